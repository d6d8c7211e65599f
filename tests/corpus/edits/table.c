// Reads a table that nobody writes, at random. To give each entry a line of its own makes it four times as
// large.
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 20000, LOOKUPS = 600000 };
struct entry {
  double value, slope;
};

int main(void) {
  struct entry *table = aligned_alloc(64, ENTRIES * sizeof *table);
  if (!table)
    abort();
  for (int i = 0; i < ENTRIES; i++)
    table[i] = (struct entry){i, 1.0 / (1 + i)};
  unsigned seed = 1;
  double sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    const struct entry *entry = &table[(seed = seed * 1103515245 + 12345) % ENTRIES];
    sum += entry->value + 0.25 * entry->slope;
  }
  printf("%.3f\n", sum);
  free(table);
  return 0;
}
