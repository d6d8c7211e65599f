/* longjmp may leave signal handlers for good: the stream is set before control is back.
 *
 * In the shared library only: a static program has no second definition to go on to. There, as after
 * an exception, streams.c notices by itself. */
#include "runtime.h"

#include <setjmp.h>

typedef void jump_function(struct __jmp_buf_tag *, int) __attribute__((noreturn));

enum jump { LONGJMP, UNDERSCORE_LONGJMP, SIGLONGJMP, LONGJMP_CHK, JUMPS };

static const char *const names[JUMPS] = {"longjmp", "_longjmp", "siglongjmp", "__longjmp_chk"};
static jump_function *real[JUMPS];

/* Early: a signal handler has better things to do. */
__attribute__((constructor(101))) static void find_real(void) {
  for (int i = 0; i < JUMPS; i++)
    real[i] = (jump_function *)(uintptr_t)memlode_next(names[i]);
}

/* The stack pointer that a jump restores; 0, which leaves no handler, where its form is not known. */
static uintptr_t target_of(const struct __jmp_buf_tag *environment) {
#if defined(__x86_64__) && defined(__GLIBC__)
  enum { SAVED_RSP = 6 };
  uintptr_t value = (uintptr_t)environment->__jmpbuf[SAVED_RSP];
  /* glibc mangles it with a secret of the thread's control block. */
  __asm__("rorq $17, %0\n\txorq %%fs:0x30, %0" : "+r"(value));
  return value;
#else
  (void)environment;
  return 0;
#endif
}

static _Noreturn void jump(enum jump which, struct __jmp_buf_tag *environment, int value) {
  memlode_notice_jump(target_of(environment), __memlode_cursor);
  if (!real[which])
    find_real(); /* before our constructor */
  real[which](environment, value);
}

MEMLODE_HIDDEN _Noreturn void memlode_longjmp(struct __jmp_buf_tag *environment, int value) {
  jump(LONGJMP, environment, value);
}
MEMLODE_INTERPOSE(longjmp);

MEMLODE_HIDDEN _Noreturn void memlode__longjmp(struct __jmp_buf_tag *environment, int value) {
  jump(UNDERSCORE_LONGJMP, environment, value);
}
MEMLODE_INTERPOSE(_longjmp);

MEMLODE_HIDDEN _Noreturn void memlode_siglongjmp(struct __jmp_buf_tag *environment, int value) {
  jump(SIGLONGJMP, environment, value);
}
MEMLODE_INTERPOSE(siglongjmp);

/* Their names in programs built with _FORTIFY_SOURCE. */
MEMLODE_HIDDEN _Noreturn void memlode___longjmp_chk(struct __jmp_buf_tag *environment, int value) {
  jump(LONGJMP_CHK, environment, value);
}
MEMLODE_INTERPOSE(__longjmp_chk);
