// The same table. The cure: keys have an array of their own, and a line holds eight of them.
#include <stdio.h>
#include <stdlib.h>

enum { BUCKETS = 1 << 16, KEYS = 45000, LOOKUPS = 300000 };

struct bucket {
  double values[6];
  long hits;
};

static struct bucket *table;
static unsigned long *keys;

static unsigned long next(unsigned long *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (*seed >> 20) % (4 * KEYS) | 1;
}

static unsigned find(unsigned long key) {
  unsigned at = (unsigned)(key * 0x9e3779b97f4a7c15u >> 48);
  while (keys[at] && keys[at] != key) // <-- cured
    at = (at + 1) % BUCKETS;
  return at;
}

int main(void) {
  table = calloc(BUCKETS, sizeof *table);
  keys = calloc(BUCKETS, sizeof *keys);
  if (!table || !keys)
    abort();
  unsigned long seed = 5;
  for (int i = 0; i < KEYS; i++) {
    unsigned long key = next(&seed);
    unsigned at = find(key);
    keys[at] = key;
    table[at].values[i % 6] = i;
  }
  double sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    unsigned at = find(next(&seed));
    if (i % 32 == 0) {
      table[at].hits++;
      sum += table[at].values[i % 6];
    }
  }
  printf("%.0f\n", sum);
  return 0;
}
