/* Calls that make children without libc's fork: clone, and what goes through `syscall` (entry_*.S).
 *
 * A child with memory of its own drops what is its parent's before its first instruction. One that shares
 * memory is a thread, with thread-local data of its own, or runs while its parent waits, as vfork's does and
 * writes to its parent's stream; or it shares memory and thread-local data and runs side by side with the
 * thread that made it. Then there are two who count with one cursor. Neither is recorded until one of them
 * has ended, which the kernel says by clearing a word: so it does for those who wait for threads
 * (CLONE_CHILD_CLEARTID). */
#include "runtime.h"
#include "syscalls.h"

#include <sched.h>
#include <stdarg.h>
#include <sys/uio.h>

/* Words that are 1 while a task shares a thread's data; bit n of memlode_sharers stands for word n. The last
 * one is for tasks whose end is not known. */
enum { WORDS = 64, FOR_EVER = WORDS - 1 };
static _Atomic uint32_t words[WORDS];
static _Atomic uint64_t taken = UINT64_C(1) << FOR_EVER;

MEMLODE_HIDDEN bool memlode_is_shared(void) {
  uint64_t sharers = atomic_load_explicit(&memlode_sharers, memory_order_relaxed);
  for (int i = 0; i < FOR_EVER && sharers >> i; i++)
    if (sharers >> i & 1 && !atomic_load_explicit(&words[i], memory_order_acquire)) {
      atomic_fetch_and_explicit(&memlode_sharers, ~(UINT64_C(1) << i), memory_order_relaxed);
      atomic_fetch_and_explicit(&taken, ~(UINT64_C(1) << i), memory_order_release);
    }
  return atomic_load_explicit(&memlode_sharers, memory_order_relaxed) != 0;
}

static int take_word(void) {
  for (int i = 0; i < FOR_EVER; i++)
    if (!(atomic_fetch_or_explicit(&taken, UINT64_C(1) << i, memory_order_acquire) >> i & 1)) {
      atomic_store_explicit(&words[i], 1, memory_order_relaxed);
      return i;
    }
  return FOR_EVER;
}

/* A call's purpose, and what became of it. */
struct child {
  uint64_t flags;
  void *cleared; /* word that the kernel clears at the child's end */
  int word;      /* that of it which is ours, or -1 */
};

/* `can_ask` if the call takes flags and a word from us. */
static void before(struct child *child, bool can_ask) {
  child->word = -1;
  if (memlode_is_sealed())
    return;
  if (!(child->flags & CLONE_VM)) {
    memlode_adopt();
    uint64_t signals;
    memlode_lock(&signals);
    memlode_make_canary();
    memlode_unlock(&signals);
    atomic_store_explicit((_Atomic uint32_t *)&__memlode_others, 1, memory_order_relaxed);
    return;
  }
  if (child->flags & (CLONE_VFORK | CLONE_SETTLS))
    return;
  child->word = can_ask && !(child->flags & CLONE_CHILD_CLEARTID) ? take_word() : FOR_EVER;
  if (child->word != FOR_EVER) {
    child->flags |= CLONE_CHILD_CLEARTID;
    child->cleared = (void *)&words[child->word];
  }
  memlode_tell_task();
  if (atomic_load_explicit(&memlode_process.mode, memory_order_acquire) == MEMLODE_CONNECTED)
    memlode_process.shared->was_dormant = 1;
  memlode_rest();
  atomic_fetch_or_explicit(&memlode_sharers, UINT64_C(1) << child->word, memory_order_relaxed);
}

/* In the caller. A child that shares its data knows as much. */
static void after(const struct child *child, long result) {
  if (child->word < 0 || result >= 0)
    return;
  if (child->word == FOR_EVER)
    atomic_fetch_and_explicit(&memlode_sharers, ~(UINT64_C(1) << FOR_EVER), memory_order_relaxed);
  else
    atomic_store_explicit(&words[child->word], 0, memory_order_relaxed);
}

/* In the child, on its stack. What is thread-local may not be there. */
MEMLODE_HIDDEN void memlode_begin_child(void) {
  if (memlode_process.canary && !atomic_load_explicit(memlode_process.canary, memory_order_relaxed))
    memlode_forget_parent();
}

/* Number and arguments of a system call, and where two of clone's are. */
enum { NUMBER, FIRST, SECOND };
#if defined(__x86_64__)
enum { CLEARED = FIRST + 3 };
#else
enum { CLEARED = FIRST + 4 };
#endif

/* Reads memory as the kernel does: it need not be there. */
static uint64_t flags_of_clone3(const void *arguments) {
  uint64_t flags = CLONE_VFORK;
  struct iovec here = {&flags, sizeof flags}, there = {(void *)(uintptr_t)arguments, sizeof flags};
  memlode_call(SYS_process_vm_readv, memlode_call(SYS_getpid), &here, 1, &there, 1, 0);
  return flags;
}

static struct child child_of(const long *call) {
  struct child child = {0};
  if (call[NUMBER] == SYS_clone) {
    child.flags = (uint64_t)call[FIRST];
    child.cleared = (void *)call[CLEARED];
  } else if (call[NUMBER] == SYS_clone3 && !memlode_is_sealed()) {
    child.flags = flags_of_clone3((const void *)call[FIRST]);
  }
  return child;
}

/* Called by `syscall` with the number of a call that makes children, and its arguments. Returns what
 * memlode_after_child wants to know. */
MEMLODE_HIDDEN long memlode_before_child(long *call) {
  struct child child = child_of(call);
  bool is_clone = call[NUMBER] == SYS_clone;
  before(&child, is_clone);
  if (is_clone && child.word >= 0) {
    call[FIRST] = (long)child.flags;
    call[CLEARED] = (long)child.cleared;
  }
  return child.word;
}

MEMLODE_HIDDEN void memlode_after_child(long result, long word) {
  struct child child = {.word = (int)word};
  after(&child, result);
}

typedef int child_function(void *argument);

/* libc's own name for clone. */
extern int __clone(child_function *function, void *stack, int flags, void *argument, ...);

/* In memory that the child has a copy of. */
struct start {
  child_function *function;
  void *argument;
};

static int start_child(void *argument) {
  struct start start = *(const struct start *)argument;
  memlode_begin_child();
  return start.function(start.argument);
}

/* Weak: a static program may define its own. */
MEMLODE_EXPORT __attribute__((weak)) int clone(child_function *function, void *stack, int flags,
                                               void *argument, ...) {
  va_list list;
  va_start(list, argument);
  void *parent_word = va_arg(list, void *);
  void *thread_data = va_arg(list, void *);
  void *cleared = va_arg(list, void *);
  va_end(list);
  struct child child = {.flags = (unsigned)flags, .cleared = cleared};
  before(&child, true);
  struct start start = {function, argument};
  bool is_process = !(flags & CLONE_VM) && function && stack;
  int result = __clone(is_process ? start_child : function, stack, (int)child.flags,
                       is_process ? &start : argument, parent_word, thread_data, child.cleared);
  after(&child, result);
  return result;
}
