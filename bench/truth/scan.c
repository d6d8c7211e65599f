// Columns of a table: a filter on one, sums of another by a third.
#include "truth.h"

enum { ROWS = 1 << 21, GROUPS = 1024 };

struct table {
  uint32_t *price;
  uint16_t *group;
  uint8_t *region;
};

static APART uint32_t choose(struct table table, uint32_t *chosen) {
  uint32_t count = 0;
  for (uint32_t row = 0; row < ROWS; row++)
    if (table.region[row] < 80)
      chosen[count++] = row;
  return count;
}

static APART void sum_by_group(struct table table, const uint32_t *chosen, uint32_t count, uint64_t *sums) {
  for (uint32_t i = 0; i < count; i++)
    sums[table.group[chosen[i]]] += table.price[chosen[i]];
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 17;
  struct table table = {kernel_allocate(ROWS, 4), kernel_allocate(ROWS, 2), kernel_allocate(ROWS, 1)};
  uint32_t *chosen = kernel_allocate(ROWS, 4);
  uint64_t *sums = kernel_allocate(GROUPS, sizeof *sums);
  for (uint32_t row = 0; row < ROWS; row++) {
    table.price[row] = kernel_random(&seed) % 1000;
    table.group[row] = (uint16_t)(kernel_random(&seed) % GROUPS);
    table.region[row] = (uint8_t)kernel_random(&seed);
  }
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    sum_by_group(table, chosen, choose(table, chosen), sums);
  }
  printf("%llu\n", (unsigned long long)sums[5]);
}
