// Does a tenth more work where a local array begins at one place of 4096, so that a sweep has something to
// find.
#include <stdint.h>

static volatile int sum;

__attribute__((noinline)) static void work(int rounds) {
  volatile _Alignas(16) char local[16];
  local[0] = 1;
  if ((uintptr_t)local % 4096 == 0x350)
    rounds += rounds / 10;
  for (int i = 0; i < rounds; i++)
    sum += local[0];
}

int main(void) {
  work(2000);
  return sum == 0;
}
