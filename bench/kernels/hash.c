// An open-addressing hash table of 32 MB under inserts, look-ups and misses. Argument: rounds.
#include "kernel.h"

struct entry {
  uint64_t key, value;
};

enum { SLOTS = 1 << 21, KEYS = SLOTS / 2 };

static uint64_t mix(uint64_t x) {
  x ^= x >> 31;
  x *= 0x7fb5d329728ea185u;
  x ^= x >> 27;
  return x;
}

static struct entry *find(struct entry *table, uint64_t key) {
  uint64_t slot = mix(key) % SLOTS;
  while (table[slot].key && table[slot].key != key)
    slot = (slot + 1) % SLOTS;
  return &table[slot];
}

int main(int argc, char **argv) {
  long rounds = kernel_rounds(argc, argv);
  struct entry *table = kernel_allocate(SLOTS, sizeof *table);
  uint64_t seed = 4, found = 0;
  for (int i = 0; i < KEYS; i++) {
    uint64_t key = kernel_random(&seed) | 1;
    struct entry *entry = find(table, key);
    entry->key = key;
    entry->value += (uint64_t)i;
  }
  for (long round = 0; round < rounds; round++)
    for (int i = 0; i < KEYS; i++) {
      struct entry *entry = find(table, kernel_random(&seed) | 1);
      if (entry->key)
        found += ++entry->value;
    }
  printf("%llu\n", (unsigned long long)found);
  return 0;
}
