// A hash join: a table of chained buckets is built of one relation and probed with another, with prefetches
// or without.
#include "truth.h"

enum { BUCKETS = 1 << 19, BUILD = 1 << 19, PROBE = 1 << 20, AHEAD = 16 };

struct tuple {
  uint32_t key;
  uint32_t payload;
};

struct entry {
  struct entry *next;
  struct tuple tuple;
};

static uint32_t bucket_of(uint32_t key) { return (key * 2654435761u) >> 13; }

static APART void build(struct entry **table, struct entry *entries, const struct tuple *tuples) {
  for (uint32_t i = 0; i < BUILD; i++) {
    struct entry **bucket = &table[bucket_of(tuples[i].key)];
    entries[i].tuple = tuples[i];
    entries[i].next = *bucket;
    *bucket = &entries[i];
  }
}

static APART uint64_t probe(struct entry *const *table, const struct tuple *tuples) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < PROBE; i++) {
    for (const struct entry *entry = table[bucket_of(tuples[i].key)]; entry; entry = entry->next) {
      if (entry->tuple.key == tuples[i].key)
        sum += entry->tuple.payload + tuples[i].payload;
    }
  }
  return sum;
}

static APART uint64_t probe_ahead(struct entry *const *table, const struct tuple *tuples) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < PROBE; i++) {
    __builtin_prefetch((const void *)&table[bucket_of(tuples[(i + 2 * AHEAD) % PROBE].key)]);
    __builtin_prefetch((const void *)table[bucket_of(tuples[(i + AHEAD) % PROBE].key)]);
    for (const struct entry *entry = table[bucket_of(tuples[i].key)]; entry; entry = entry->next) {
      if (entry->tuple.key == tuples[i].key)
        sum += entry->tuple.payload + tuples[i].payload;
    }
  }
  return sum;
}

static APART struct tuple *relation(uint32_t count, uint64_t *seed) {
  struct tuple *tuples = kernel_allocate(count, sizeof *tuples);
  for (uint32_t i = 0; i < count; i++)
    tuples[i] = (struct tuple){kernel_random(seed) % (2 * BUILD), i};
  return tuples;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 3;
  struct entry **table = (struct entry **)kernel_allocate(BUCKETS, sizeof(struct entry *));
  struct entry *entries = kernel_allocate(BUILD, sizeof *entries);
  build(table, entries, relation(BUILD, &seed));
  const struct tuple *probes = relation(PROBE, &seed);
  uint64_t sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    sum += truth_is(argv, "prefetch") ? probe_ahead(table, probes) : probe(table, probes);
  }
  printf("%llu\n", (unsigned long long)sum);
}
