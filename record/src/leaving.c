/* Ways to end a process, or to make it another program, that libc takes without calling what ends.c defines,
 * and to let threads be ended.
 *
 * Not in the static library: a static program has no second definition to go on to. */
#include "runtime.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

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

MEMLODE_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[]) {
  memlode_leave();
  int result = NEXT(execvpe)(file, arguments, environment);
  memlode_stay();
  return result;
}

MEMLODE_EXPORT int execvp(const char *file, char *const arguments[]) {
  return execvpe(file, arguments, environ);
}

MEMLODE_EXPORT int fexecve(int descriptor, char *const arguments[], char *const environment[]) {
  memlode_leave();
  int result = NEXT(fexecve)(descriptor, arguments, environment);
  memlode_stay();
  return result;
}

MEMLODE_EXPORT int execveat(int directory, const char *path, char *const arguments[],
                            char *const environment[], int flags) {
  memlode_leave();
  int result = NEXT(execveat)(directory, path, arguments, environment, flags);
  memlode_stay();
  return result;
}

static size_t count_arguments(const char *first, va_list list) {
  size_t count = 0;
  for (const char *argument = first; argument; argument = va_arg(list, const char *))
    count++;
  return count;
}

/* Writes `first`, the arguments behind it and the null pointer at their end into `array`: `count` + 1. */
static void gather_arguments(char *array[], size_t count, const char *first, va_list list) {
  array[0] = (char *)(uintptr_t)first;
  for (size_t i = 1; i <= count; i++)
    array[i] = va_arg(list, char *);
}

MEMLODE_EXPORT int execl(const char *path, const char *first, ...) {
  va_list list;
  va_start(list, first);
  size_t count = count_arguments(first, list);
  char *arguments[count + 1];
  va_end(list);
  va_start(list, first);
  gather_arguments(arguments, count, first, list);
  va_end(list);
  return execve(path, arguments, environ);
}

MEMLODE_EXPORT int execlp(const char *file, const char *first, ...) {
  va_list list;
  va_start(list, first);
  size_t count = count_arguments(first, list);
  char *arguments[count + 1];
  va_end(list);
  va_start(list, first);
  gather_arguments(arguments, count, first, list);
  va_end(list);
  return execvpe(file, arguments, environ);
}

MEMLODE_EXPORT int execle(const char *path, const char *first, ...) {
  va_list list;
  va_start(list, first);
  size_t count = count_arguments(first, list);
  char *arguments[count + 1];
  va_end(list);
  va_start(list, first);
  gather_arguments(arguments, count, first, list);
  char *const *environment = va_arg(list, char *const *);
  va_end(list);
  return execve(path, arguments, environment);
}

MEMLODE_EXPORT int pthread_setcanceltype(int type, int *previous) {
  if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
    memlode_expect_cancelling();
  return NEXT(pthread_setcanceltype)(type, previous);
}
