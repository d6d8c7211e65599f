/* A process's beginning: a forked child starts streams of its own. */
#include "runtime.h"
#include "syscalls.h"

#include <sys/mman.h>

/* Takes the parent's rings away from a child that was seen. In one that was made by a signal handler, the
 * interrupted code will write on where it was: to memory that nobody reads, until its next refill. */
static void drop_rings(bool is_interrupting) {
  for (uint32_t slot = 0; slot < memlode_process.rings; slot++) {
    struct memlode_ring_header *ring = memlode_rings[slot];
    if (!ring)
      continue;
    memlode_rings[slot] = NULL;
    if (is_interrupting)
      memlode_call(SYS_mmap, ring, (size_t)MEMLODE_REGION_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    else
      memlode_call(SYS_munmap, ring, (size_t)MEMLODE_REGION_BYTES);
  }
}

/* Streams, ring and shared memory are the parent's: leave them as they are. The collector hears
 * of the child with its first event. */
static void forget_parent(bool was_seen) {
  uint64_t signals = 0;
  memlode_block_signals(&signals);
  memlode_owner = 0;
  bool is_interrupting = memlode_forget_streams();
  atomic_store_explicit(&memlode_sharers, 0, memory_order_relaxed);
  if (memlode_is_sealed())
    return; /* its parent has told why neither is recorded */
  if (atomic_load_explicit(&memlode_process.mode, memory_order_relaxed) == MEMLODE_CONNECTED) {
    atomic_store_explicit(&memlode_process.mode, MEMLODE_UNCONNECTED, memory_order_relaxed);
    /* The first page stays: to tell the parent's collector of a child that does not find it. */
    memlode_process.parent = memlode_process.shared;
    memlode_call(SYS_munmap, (uintptr_t)memlode_process.shared + MEMLODE_CONTROL_BYTES,
                 MEMLODE_RING_FIRST_RING_OFFSET - MEMLODE_CONTROL_BYTES);
    if (was_seen)
      drop_rings(is_interrupting);
    else
      memlode_leave_behind();
    memlode_forget_control();
  } else if (atomic_load_explicit(&memlode_process.mode, memory_order_relaxed) == MEMLODE_DISCARDING) {
    memlode_tell_parent();
  }
  if (memlode_process.canary)
    atomic_store_explicit(memlode_process.canary, 1, memory_order_relaxed);
  memlode_process.shared = NULL;
  memlode_process.pid = (uint32_t)memlode_call(SYS_getpid);
  atomic_store_explicit(&memlode_process.lock, 0, memory_order_relaxed); /* its holder is not here */
  memlode_restore_signals(&signals);
}

MEMLODE_HIDDEN void memlode_forget_parent(void) { forget_parent(true); }

MEMLODE_HIDDEN void memlode_notice_child(void) {
  uint64_t *cursor = __memlode_cursor;
  forget_parent(false);
  if (memlode_left_behind(cursor))
    __memlode_cursor = cursor; /* it has no ring: the next refill copies its words */
}

MEMLODE_HIDDEN void memlode_adopt(void) {
  if (memlode_is_strange_child())
    memlode_notice_child();
  if (!memlode_ring && memlode_left_behind(__memlode_cursor))
    memlode_refill(__memlode_cursor);
}

/* pthread_atfork by libc's own name. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *image);
extern void *__dso_handle MEMLODE_HIDDEN;

/* Parent and child may share memory, and talk. */
static void expect_child(void) {
  memlode_adopt();
  atomic_store_explicit((_Atomic uint32_t *)&__memlode_others, 1, memory_order_relaxed);
}

__attribute__((constructor(101))) static void begin_process(void) {
  memlode_process.pid = (uint32_t)memlode_call(SYS_getpid);
  memlode_process.has_begun = true;
  memlode_expect_end();
  __register_atfork(expect_child, NULL, memlode_forget_parent, (void *)&__dso_handle);
}
