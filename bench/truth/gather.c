// Values picked by index: indices as they come, or sorted first.
#include "truth.h"

enum { VALUES = 1 << 23, INDICES = 1 << 20 };

static int compare(const void *one, const void *other) {
  uint32_t a = *(const uint32_t *)one;
  uint32_t b = *(const uint32_t *)other;
  return (a > b) - (a < b);
}

static APART uint64_t gather(const uint64_t *values, const uint32_t *indices) {
  uint64_t sum = 0;
  for (size_t i = 0; i < INDICES; i++)
    sum += values[indices[i]];
  return sum;
}

static APART void count(uint32_t *counts, const uint32_t *indices) {
  for (size_t i = 0; i < INDICES; i++)
    counts[indices[i] / 4]++;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 7;
  uint64_t *values = kernel_allocate(VALUES, sizeof *values);
  uint32_t *counts = kernel_allocate(VALUES / 4, sizeof *counts);
  uint32_t *indices = kernel_allocate(INDICES, sizeof *indices);
  for (size_t i = 0; i < VALUES; i++)
    values[i] = i;
  for (size_t i = 0; i < INDICES; i++)
    indices[i] = kernel_random(&seed) % VALUES;
  if (truth_is(argv, "sorted"))
    qsort(indices, INDICES, sizeof *indices, compare);
  uint64_t sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    sum += gather(values, indices);
    if (truth_is(argv, "counting"))
      count(counts, indices);
  }
  printf("%llu %u\n", (unsigned long long)sum, counts[1]);
}
