/* Three things that touch memory and are not recorded: an assembly that may touch any, the copy of an
 * argument that is passed in memory, and a function without a frame. */
#include <stdio.h>

struct large {
  long numbers[16];
};
struct large large = {{1, 2, 3}};
long total;

__attribute__((naked, noinline)) static long bare(void) {
#if defined(__x86_64__)
  __asm__("xorl %eax, %eax\n\tret");
#else
  __asm__("mov x0, #0\n\tret");
#endif
}

__attribute__((noinline)) static long take(struct large copy) {
  return copy.numbers[2] + copy.numbers[total & 15];
}

int main(void) {
  total += take(large) + bare();
  __asm__ volatile("# may touch any memory" ::: "memory");
  printf("%ld\n", total);
  return 0;
}
