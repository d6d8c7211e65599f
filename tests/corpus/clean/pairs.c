// Goes through pairs from front to back and uses all of each.
#include <stdio.h>

enum { PAIRS = 1 << 16 };
struct pair {
  long a, b;
};
static struct pair pairs[PAIRS];

int main(void) {
  long sum = 0;
  for (int n = 0; n < 8; n++)
    for (int i = 0; i < PAIRS; i++) {
      pairs[i].a += i;
      pairs[i].b ^= pairs[i].a;
      sum += pairs[i].b;
    }
  printf("%ld\n", sum);
  return 0;
}
