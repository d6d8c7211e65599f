/* A program that forbids itself system calls: recording ends before it does.
 *
 * What filters let pass is not known, and a call that they do not let pass may end the process. From then on
 * the runtime makes no call at all in this process; what it does is not recorded, which the shared memory
 * tells. */
#include "runtime.h"
#include "syscalls.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

/* Ends recording of this process. Returns whether it was recorded until now. A child of vfork leaves its
 * parent alone.
 */
static bool seal(void) {
  if (atomic_load_explicit(&memlode_process.mode, memory_order_acquire) != MEMLODE_CONNECTED ||
      memlode_is_strange_child() || memlode_is_vfork_child())
    return false;
  struct memlode_process_header *shared = memlode_process.shared;
  shared->was_dormant = 1;
  atomic_store_explicit((_Atomic uint32_t *)&shared->sealed, 1, memory_order_relaxed);
  memlode_settle();
  memlode_rest();
  memlode_doorbell(true);
  memlode_discard();
  atomic_store_explicit(&memlode_process.sealed, 1, memory_order_release);
  return true;
}

/* It has not come to that. */
static void unseal(void) {
  atomic_store_explicit(&memlode_process.sealed, 0, memory_order_relaxed);
  atomic_store_explicit((_Atomic uint32_t *)&memlode_process.shared->sealed, 0, memory_order_relaxed);
  memlode_discard_no_more();
}

/* Does what libc does with the result of a system call. */
static long finish(long result, bool was_sealed) {
  if (!memlode_failed(result))
    return result;
  if (was_sealed)
    unseal();
  errno = (int)-result;
  return -1;
}

MEMLODE_HIDDEN int memlode_prctl(int option, ...) {
  va_list list;
  va_start(list, option);
  unsigned long words[4];
  for (int i = 0; i < 4; i++)
    words[i] = va_arg(list, unsigned long);
  va_end(list);
  bool asks = option == PR_SET_SECCOMP &&
              (words[0] == SECCOMP_MODE_STRICT || (words[0] == SECCOMP_MODE_FILTER && words[1]));
  bool was_sealed = asks && seal();
  return (int)finish(memlode_call(SYS_prctl, option, words[0], words[1], words[2], words[3]), was_sealed);
}
MEMLODE_INTERPOSE(prctl);

/* seccomp has no function of its own in libc; libseccomp and others use this one. Jumped to from `syscall`.
 */
MEMLODE_HIDDEN long memlode_enter_seccomp(unsigned long operation, unsigned long flags,
                                          const void *arguments) {
  bool asks = (operation == SECCOMP_SET_MODE_STRICT && !flags && !arguments) ||
              (operation == SECCOMP_SET_MODE_FILTER && arguments);
  bool was_sealed = asks && seal();
  return finish(memlode_call(SYS_seccomp, operation, flags, arguments), was_sealed);
}

/* The error of a system call that `syscall` has made. */
MEMLODE_HIDDEN long memlode_fail(long result) {
  errno = (int)-result;
  return -1;
}
