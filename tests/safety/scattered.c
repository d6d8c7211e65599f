/* A walk over addresses that no compression shortens much. */
#include <stdint.h>
#include <stdio.h>

enum { CELLS = 1 << 20 };
static volatile uint32_t cells[CELLS];

int main(void) {
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < 1000000; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    cells[state % CELLS] += 1;
  }
  puts("done");
  return 0;
}
