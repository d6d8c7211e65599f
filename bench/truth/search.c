// Binary search in a sorted array, or in the same numbers in the order of the levels of the tree (Eytzinger).
#include "truth.h"

enum { COUNT = (1 << 22) - 1 };

static APART uint32_t find_sorted(const uint32_t *numbers, uint32_t wanted) {
  const uint32_t *base = numbers;
  for (uint32_t length = COUNT; length > 1;) {
    uint32_t half = length / 2;
    base = base[half] <= wanted ? base + half : base;
    length -= half;
  }
  return *base;
}

static APART uint32_t find_levels(const uint32_t *numbers, uint32_t wanted) {
  uint32_t at = 1;
  uint32_t found = 0;
  while (at <= COUNT) {
    // Sixteen numbers to a line: the four levels below are there when they are needed.
    __builtin_prefetch(numbers + (size_t)at * 16);
    uint32_t here = numbers[at];
    found = here <= wanted ? here : found;
    at = 2 * at + (here <= wanted);
  }
  return found;
}

static uint32_t arrange(uint32_t *numbers, uint32_t at, uint32_t next) {
  if (at > COUNT)
    return next;
  next = arrange(numbers, 2 * at, next);
  numbers[at] = 2 * next++;
  return arrange(numbers, 2 * at + 1, next);
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 8;
  int is_sorted = !truth_is(argv, "eytzinger");
  uint32_t *numbers = aligned_alloc(64, (COUNT + 1) * sizeof *numbers);
  if (!numbers)
    abort();
  numbers[0] = numbers[COUNT] = 0;
  if (is_sorted)
    for (uint32_t i = 0; i < COUNT; i++)
      numbers[i] = 2 * i;
  else
    arrange(numbers, 1, 0);
  uint64_t sum = 0;
  for (long i = 0; i < rounds * 10000; i++) {
    uint32_t wanted = kernel_random(&seed) % (2 * COUNT);
    sum += is_sorted ? find_sorted(numbers, wanted) : find_levels(numbers, wanted);
  }
  printf("%llu\n", (unsigned long long)sum);
}
