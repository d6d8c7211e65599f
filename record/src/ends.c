/* The process's end, as far as it has a say in it: the shared memory tells which streams are whole.
 *
 * The collector cannot see where a thread's last segment ends: the words behind it are zero, and its own last
 * words may be. Code that calls one of the functions here, in exec.c or in leaving.c, is between two
 * segments. And of threads that are not there any more all words are, for a thread ends when it calls
 * something, unless it is cancelled. */
#include "runtime.h"
#include "syscalls.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static bool is_connected(void) {
  return atomic_load_explicit(&memlode_process.mode, memory_order_acquire) == MEMLODE_CONNECTED &&
         !memlode_is_strange_child();
}

/* Threads that have ended before the process does. */
static void mark_ended(struct memlode_process_header *shared) {
  long pid = memlode_call(SYS_getpid);
  /* The lowest free ring is taken: no more rings are in use than were ever claimed. */
  uint64_t claimed = atomic_load_explicit((_Atomic uint64_t *)&shared->generation, memory_order_relaxed);
  for (uint32_t i = 0; i < memlode_process.rings && i < claimed; i++) {
    struct memlode_ring_header *ring = memlode_rings[i];
    if (ring &&
        atomic_load_explicit((_Atomic uint32_t *)&ring->state, memory_order_acquire) ==
            MEMLODE_RING_SLOT_ACTIVE &&
        memlode_call(SYS_tgkill, pid, ring->tid, 0) == -ESRCH)
      atomic_store_explicit((_Atomic uint32_t *)&ring->ended, 1, memory_order_relaxed);
  }
}

MEMLODE_HIDDEN bool memlode_settle_process(void) {
  memlode_adopt();
  if (!is_connected())
    return false;
  memlode_settle();
  if (memlode_is_vfork_child())
    return false; /* its parent stays */
  mark_ended(memlode_process.shared);
  return true;
}

MEMLODE_HIDDEN void memlode_leave(void) {
  if (memlode_settle_process())
    atomic_store_explicit((_Atomic uint32_t *)&memlode_process.shared->exits, 1, memory_order_release);
}

MEMLODE_HIDDEN void memlode_stay(void) {
  if (is_connected() && !memlode_is_vfork_child())
    atomic_store_explicit((_Atomic uint32_t *)&memlode_process.shared->exits, 0, memory_order_relaxed);
}

MEMLODE_HIDDEN void memlode_expect_cancelling(void) {
  atomic_store_explicit(&memlode_process.cancels, 1, memory_order_relaxed);
  if (is_connected())
    atomic_store_explicit((_Atomic uint32_t *)&memlode_process.shared->cancels, 1, memory_order_relaxed);
}

/* Called at the beginning, so that a static program is linked with this file. */
MEMLODE_HIDDEN void memlode_expect_end(void) {
  if (memlode_overlooks_cancelling())
    memlode_expect_cancelling();
}

/* The last destructor of the last image: the program was not cut short. */
__attribute__((destructor(101))) static void end_process(void) {
  memlode_adopt();
  if (!is_connected() || memlode_is_vfork_child())
    return;
  memlode_leave();
  atomic_store_explicit((_Atomic uint32_t *)&memlode_process.shared->exiting_thread,
                        (uint32_t)memlode_call(SYS_gettid), memory_order_relaxed);
}

MEMLODE_HIDDEN _Noreturn void memlode__exit(int status) {
  memlode_leave();
  for (;;)
    memlode_call(SYS_exit_group, status);
}

MEMLODE_INTERPOSE(_exit);

MEMLODE_HIDDEN _Noreturn void memlode__Exit(int status) { memlode__exit(status); }
MEMLODE_INTERPOSE(_Exit);
