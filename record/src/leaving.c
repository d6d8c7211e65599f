/* Ways to end a process that libc takes without calling what ends.c defines, and to let threads be ended.
 *
 * Not in the static library: a static program has no second definition to go on to. */
#include "runtime.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>

/* <stdlib.h> declares what this library does without. */
extern int at_quick_exit(void (*function)(void));
extern _Noreturn void abort(void);

/* The next definition of a function behind ours. */
#define NEXT(function) ((__typeof__(&(function)))(uintptr_t)dlsym(RTLD_NEXT, #function))

MEMLODE_HIDDEN const bool memlode_sees_cancelling = true;

/* Runs behind all other functions of its kind, as it was the first to be registered. */
__attribute__((constructor(101))) static void expect_quick_exit(void) { at_quick_exit(memlode_leave); }

MEMLODE_EXPORT _Noreturn void abort(void) {
  memlode_settle_process();
  NEXT(abort)();
  __builtin_unreachable();
}

MEMLODE_EXPORT _Noreturn void __assert_fail(const char *assertion, const char *file, unsigned line,
                                            const char *function) {
  memlode_settle_process();
  NEXT(__assert_fail)(assertion, file, line, function);
  __builtin_unreachable();
}

MEMLODE_EXPORT int pthread_setcanceltype(int type, int *previous) {
  if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
    memlode_expect_cancelling();
  return NEXT(pthread_setcanceltype)(type, previous);
}
