// The same with a table that translations reach over.
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 1 << 20, LOOKUPS = 300000 };

int main(void) {
  int *table = malloc(ENTRIES * sizeof *table);
  if (!table)
    return 1;
  for (int i = 0; i < ENTRIES; i += 1024)
    table[i] = i;
  unsigned seed = 3;
  long sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    seed = seed * 1664525 + 1013904223;
    sum += table[(seed >> 8) * 1024 % ENTRIES + (seed >> 22)];
    seed += (unsigned)sum & 1;
  }
  printf("%ld\n", sum);
  free(table);
  return 0;
}
