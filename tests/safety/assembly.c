/* Two things that are not recorded: an assembly that touches what a register points to, and a function
 * without a frame. The copy of an argument that is passed in memory is. */
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
#if defined(__x86_64__)
  __asm__ volatile("movq (%0), %%rax" ::"r"(&total) : "rax", "memory");
#else
  __asm__ volatile("ldr x0, [%0]" ::"r"(&total) : "x0", "memory");
#endif
  printf("%ld\n", total);
  return 0;
}
