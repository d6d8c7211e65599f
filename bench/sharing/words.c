// Counters of four bytes side by side, counted up in a loop that is one record.
#include "pair.h"

static volatile int *counts;

static void work(long self, long turns) {
  for (int i = 0; i < turns; i++)
    counts[self * (APART / 8)]++;
}

int main(int argc, char **argv) {
  counts = aligned_alloc(256, 512);
  for (int i = 0; i < 512 / 4; i++)
    counts[i] = 0;
  pair(argc, argv);
  printf("%d\n", counts[0]);
  return 0;
}
