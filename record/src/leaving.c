/* Ways to end a process that libc takes without calling what ends.c defines, and to let threads be ended.
 *
 * Not in the static library: a static program has no second definition to go on to. */
#include "runtime.h"

#include <assert.h>
#include <pthread.h>

/* at_quick_exit by libc's own name. */
extern int __cxa_at_quick_exit(void (*function)(void *), void *image);
extern void *__dso_handle MEMLODE_HIDDEN;
/* <stdlib.h> declares what this library does without. */
extern _Noreturn void abort(void);

/* The next definition of a function behind ours. */
#define NEXT(function) ((__typeof__(&(function)))(uintptr_t)memlode_next(#function))

MEMLODE_HIDDEN bool memlode_overlooks_cancelling(void) { return false; }

/* Runs behind all other functions of its kind, as it was the first to be registered. */
static void leave(void *unused) {
  (void)unused;
  memlode_leave();
}
__attribute__((constructor(101))) static void expect_quick_exit(void) {
  __cxa_at_quick_exit(leave, (void *)&__dso_handle);
}

MEMLODE_HIDDEN _Noreturn void memlode_abort(void) {
  memlode_settle_process();
  NEXT(abort)();
  __builtin_unreachable();
}
MEMLODE_INTERPOSE(abort);

MEMLODE_HIDDEN _Noreturn void memlode___assert_fail(const char *assertion, const char *file, unsigned line,
                                                    const char *function) {
  memlode_settle_process();
  NEXT(__assert_fail)(assertion, file, line, function);
  __builtin_unreachable();
}
MEMLODE_INTERPOSE(__assert_fail);

MEMLODE_HIDDEN int memlode_pthread_setcanceltype(int type, int *previous) {
  if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
    memlode_expect_cancelling();
  return NEXT(pthread_setcanceltype)(type, previous);
}
MEMLODE_INTERPOSE(pthread_setcanceltype);
