/* libc's fork without the program's handlers.
 *
 * Not in the static library: a static program has no second definition to go on to, and its child is noticed
 * later (apart.c). */
#include "runtime.h"

#include <errno.h>
#include <unistd.h>

MEMLODE_HIDDEN long memlode_before_child(long *call);
MEMLODE_HIDDEN void memlode_begin_child(void);

static pid_t (*real)(void);

/* Early: the function may be called from a signal handler, and the look-up may not. */
__attribute__((constructor(101))) static void find_real(void) {
  real = (pid_t (*)(void))(uintptr_t)memlode_next("_Fork");
}

MEMLODE_EXPORT __attribute__((weak)) pid_t _Fork(void) {
  if (!real)
    find_real(); /* before our constructor */
  if (!real) {
    errno = ENOSYS;
    return -1;
  }
  long call[7] = {0};
  memlode_before_child(call);
  pid_t result = real();
  if (!result)
    memlode_begin_child();
  return result;
}
