/* Handlers that are suspended: a program that switches its user threads in a timer's handler goes on
 * elsewhere, and comes back to the handler later. The code that it interrupted has its cursor in a register,
 * and writes on in its stream then. So that stream is nobody else's meanwhile: what belongs to the handler is
 * noted in the stream's ring, behind the header, and the thread has a list of them.
 *
 *   thread    handler of A        handler of B        code of C
 *     └─────► ring of A's code ─► ring of B's code    writes to the stream that B's handler had
 *
 * Which of a thread's handlers is not around its code any more is suspended, unless the code that it
 * interrupted cannot go on, for its stack was cut: then it is over. A thread's own stack is the only one of
 * which that can be told; of others, the next handler tells that finds itself in a suspended one's place. */
#include "runtime.h"
#include "syscalls.h"

#include <errno.h>

struct suspended {
  struct memlode_handler handler;
  struct suspended *next;
  uint32_t level;
  uint32_t group; /* handlers that were suspended at once: each has interrupted the one before it */
};

enum {
  NOTE_OFFSET = 4096,
  PAGE = 4096, /* no system has smaller ones */
};

_Static_assert(sizeof(struct memlode_ring_header) <= NOTE_OFFSET &&
                   NOTE_OFFSET + sizeof(struct suspended) <= MEMLODE_RING_CHUNK_BYTES,
               "a ring has room for a note behind its header");

static __thread struct suspended *first;
static __thread uint32_t groups;

extern void *__libc_stack_end __attribute__((weak));

/* Returns the end of a thread's stack: its control block is there, but for the main thread's. */
static uintptr_t stack_end(bool is_main) {
  if (is_main)
    return &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0;
  uintptr_t pointer;
#if defined(__x86_64__)
  __asm__("movq %%fs:0, %0" : "=r"(pointer));
#elif defined(__aarch64__)
  __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
  return pointer;
}

/* Returns whether a page may be read. The kernel looks at the set before it refuses what is to become of it.
 */
static bool is_readable(uintptr_t page) {
  return memlode_call(SYS_rt_sigprocmask, -1, page, 0, sizeof(uint64_t)) != -EFAULT;
}

MEMLODE_HIDDEN bool memlode_is_over(const struct memlode_handler *handler, uintptr_t at) {
  uintptr_t interrupted_at = handler->interrupted_at;
  const struct memlode_ring_header *ring = handler->interrupted.ring;
  if (!ring)
    return true; /* nothing to be kept */
  /* The kernel keeps 128 MiB free for the main thread's stack; the others' may lie side by side. */
  bool is_main = ring->tid == memlode_process.pid;
  uintptr_t most = is_main ? (uintptr_t)128 << 20 : (uintptr_t)64 << 20;
  uintptr_t end = stack_end(is_main);
  if (end - at >= most || end - interrupted_at >= most)
    return false;
  uintptr_t low = at < interrupted_at ? at : interrupted_at;
  uintptr_t high = at < interrupted_at ? interrupted_at : at;
  for (uintptr_t page = (low | (PAGE - 1)) + 1; !is_main && page < high; page += PAGE)
    if (!memlode_is_sealed() && !is_readable(page))
      return false; /* between two stacks */
  return true;
}

MEMLODE_HIDDEN uint32_t memlode_new_group(void) { return ++groups; }

MEMLODE_HIDDEN void memlode_suspend(const struct memlode_handler *handler, uint32_t level, uint32_t group) {
  if (!handler->interrupted.ring)
    return;
  struct suspended *note = (struct suspended *)((char *)handler->interrupted.ring + NOTE_OFFSET);
  note->handler = *handler;
  note->level = level;
  note->group = group;
  note->next = first;
  first = note;
}

MEMLODE_HIDDEN bool memlode_find_suspended(uintptr_t frame, uint32_t *group) {
  for (const struct suspended *note = first; note; note = note->next)
    if (note->handler.frame == frame) {
      *group = note->group;
      return true;
    }
  return false;
}

static struct memlode_handler unlink_note(struct suspended **link) {
  struct suspended *note = *link;
  *link = note->next;
  return note->handler;
}

MEMLODE_HIDDEN uint32_t memlode_take_suspended(uint32_t group, struct memlode_handler *handler) {
  for (struct suspended **link = &first; *link; link = &(*link)->next)
    if ((*link)->group == group) {
      uint32_t level = (*link)->level;
      *handler = unlink_note(link);
      return level;
    }
  return 0;
}

MEMLODE_HIDDEN bool memlode_take_overwritten(uintptr_t low, uintptr_t high, struct memlode_handler *handler) {
  for (struct suspended **link = &first; *link; link = &(*link)->next)
    if ((*link)->handler.frame >= low && (*link)->handler.frame <= high) {
      *handler = unlink_note(link);
      return true;
    }
  return false;
}

MEMLODE_HIDDEN bool memlode_forget_suspended(void) {
  bool any = first != NULL; /* the notes themselves are in rings, which a child need not have */
  first = NULL;
  return any;
}
