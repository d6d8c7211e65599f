// Each thread adds to an atomic counter: one for both, or padded, one for each.
#include "pair.h"

#include <stdatomic.h>

static _Alignas(256) atomic_long counts[2 * 256 / sizeof(atomic_long)];

static void work(long self, long turns) {
#ifdef PADDED
  atomic_long *count = &counts[self * 256 / sizeof(atomic_long)];
#else
  atomic_long *count = &counts[0];
  (void)self;
#endif
  for (long i = 0; i < turns; i++)
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

int main(int argc, char **argv) {
  pair(argc, argv);
  printf("%ld\n", (long)counts[0]);
  return 0;
}
