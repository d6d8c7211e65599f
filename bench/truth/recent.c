// A cache of the recently used: a table of chains, and a list that entries are moved to the front of.
#include "truth.h"

enum { ENTRIES = 1 << 18, BUCKETS = 1 << 18 };

struct entry {
  uint64_t key;
  struct entry *next_in_bucket;
  struct entry *older, *newer;
  uint64_t value[4];
};

struct cache {
  struct entry **buckets;
  struct entry *entries;
  struct entry ends;
};

static uint32_t bucket_of(uint64_t key) { return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 46); }

static APART struct entry *lookup(const struct cache *cache, uint64_t key) {
  struct entry *entry = cache->buckets[bucket_of(key)];
  while (entry && entry->key != key)
    entry = entry->next_in_bucket;
  return entry;
}

static APART void unlink_entry(struct entry *entry) {
  entry->older->newer = entry->newer;
  entry->newer->older = entry->older;
}

static APART void to_front(struct cache *cache, struct entry *entry) {
  entry->older = cache->ends.older;
  entry->newer = &cache->ends;
  cache->ends.older->newer = entry;
  cache->ends.older = entry;
}

static APART void replace(struct cache *cache, struct entry *entry, uint64_t key) {
  struct entry **link = &cache->buckets[bucket_of(entry->key)];
  while (*link && *link != entry)
    link = &(*link)->next_in_bucket;
  if (*link)
    *link = entry->next_in_bucket;
  entry->key = key;
  entry->value[0] = key;
  entry->next_in_bucket = cache->buckets[bucket_of(key)];
  cache->buckets[bucket_of(key)] = entry;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 9;
  struct cache cache = {(struct entry **)kernel_allocate(BUCKETS, sizeof(struct entry *)), NULL, {0}};
  cache.entries = kernel_allocate(ENTRIES, sizeof *cache.entries);
  cache.ends.older = cache.ends.newer = &cache.ends;
  for (uint32_t i = 0; i < ENTRIES; i++)
    to_front(&cache, &cache.entries[i]);
  uint64_t hits = 0;
  for (long i = 0; i < rounds * 10000; i++) {
    uint64_t key = kernel_random(&seed) % (ENTRIES + ENTRIES / 4) + 1;
    struct entry *entry = lookup(&cache, key);
    if (entry) {
      hits += entry->value[0] == key;
    } else {
      entry = cache.ends.newer;
      replace(&cache, entry, key);
    }
    unlink_entry(entry);
    to_front(&cache, entry);
  }
  printf("%llu\n", (unsigned long long)hits);
}
