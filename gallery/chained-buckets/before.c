// A hash table with chains of names. The disease: a lookup compares hashes down a chain, and each link has
// the name and the value of its entry in it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAINS = 1 << 12, ENTRIES = 24000, LOOKUPS = 120000 };

struct entry {
  unsigned hash;
  struct entry *next;
  char name[64];
  long value;
};

static struct entry *chains[CHAINS];

static unsigned seed = 17;

static unsigned number(void) {
  seed = seed * 1664525 + 1013904223;
  return seed >> 8;
}

int main(void) {
  static unsigned known[ENTRIES];
  for (int i = 0; i < ENTRIES; i++) {
    struct entry *entry = malloc(sizeof *entry);
    if (!entry)
      abort();
    entry->hash = known[i] = number();
    entry->value = i;
    memset(entry->name, i, sizeof entry->name);
    entry->next = chains[entry->hash % CHAINS];
    chains[entry->hash % CHAINS] = entry;
  }
  long sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    unsigned hash = known[number() % ENTRIES];
    struct entry *entry = chains[hash % CHAINS];
    while (entry && entry->hash != hash) // <-- hot
      entry = entry->next;
    if (entry)
      sum += entry->value + entry->name[i % 64];
  }
  printf("%ld\n", sum);
  return 0;
}
