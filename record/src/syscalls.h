/* System calls without libc.
 *
 * The refill path may run anywhere: in a signal handler, between fork and exec, before libc is
 * set up, in the middle of malloc. So it calls nobody, and errno keeps its value because nobody
 * touches it. A failed call returns -errno. */
#ifndef MEMLODE_SYSCALLS_H
#define MEMLODE_SYSCALLS_H

#include <stdint.h>
#include <sys/syscall.h>

#if defined(__x86_64__)

static inline long memlode_syscall(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static inline uint64_t memlode_time_stamp(void) {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
}

#elif defined(__aarch64__)

static inline long memlode_syscall(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}

static inline uint64_t memlode_time_stamp(void) {
  uint64_t stamp;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(stamp));
  return stamp;
}

#else
#error "memlode's runtime knows x86-64 and AArch64"
#endif

#define MEMLODE_SYSCALL_6(n, a, b, c, d, e, f, ...)                                                          \
  memlode_syscall(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define memlode_call(...) MEMLODE_SYSCALL_6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

static inline int memlode_failed(long result) { return result < 0 && result > -4096; }

#endif
