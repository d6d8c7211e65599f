// Disjoint sets: unions of random pairs, with paths halved on the way.
#include "truth.h"

enum { COUNT = 1 << 21 };

static APART uint32_t find(uint32_t *parent, uint32_t at) {
  while (parent[at] != at) {
    parent[at] = parent[parent[at]];
    at = parent[at];
  }
  return at;
}

static APART uint32_t unite(uint32_t *parent, uint32_t *size, uint64_t *seed) {
  uint32_t left = COUNT;
  for (uint32_t i = 0; i < COUNT / 2; i++) {
    uint32_t one = find(parent, kernel_random(seed) % COUNT);
    uint32_t other = find(parent, kernel_random(seed) % COUNT);
    if (one == other)
      continue;
    if (size[one] < size[other]) {
      uint32_t kept = one;
      one = other;
      other = kept;
    }
    parent[other] = one;
    size[one] += size[other];
    left--;
  }
  return left;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 16;
  uint32_t *parent = kernel_allocate(COUNT, sizeof *parent);
  uint32_t *size = kernel_allocate(COUNT, sizeof *size);
  uint64_t sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    for (uint32_t i = 0; i < COUNT; i++) {
      parent[i] = i;
      size[i] = 1;
    }
    sum += unite(parent, size, &seed);
  }
  printf("%llu\n", (unsigned long long)sum);
}
