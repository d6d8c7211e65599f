/* Functions that recurse on a small stack. */
#include <stdlib.h>

#include "objects.h"

int visits[256];

__attribute__((noinline)) static int walk(int n) {
  volatile int here = n;
  visits[n & 255]++;
  return n ? walk(n - 1) + here : 0;
}

int main(void) {
  OBJECT(visits);
  printf("%d %d\n", walk(1500), visits[7]);
  return 0;
}
