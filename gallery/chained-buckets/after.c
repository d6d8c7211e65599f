// The same table. The cure: links are small, and the name and value of an entry are found by a
// number.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAINS = 1 << 12, ENTRIES = 24000, LOOKUPS = 120000 };

struct named {
  char name[64];
  long value;
};

struct entry {
  unsigned hash;
  struct entry *next;
  int named;
};

static struct named *named;

static struct entry *chains[CHAINS];

static unsigned seed = 17;

static unsigned number(void) {
  seed = seed * 1664525 + 1013904223;
  return seed >> 8;
}

int main(void) {
  static unsigned known[ENTRIES];
  named = malloc(ENTRIES * sizeof *named);
  if (!named)
    abort();
  for (int i = 0; i < ENTRIES; i++) {
    struct entry *entry = malloc(sizeof *entry);
    if (!entry)
      abort();
    entry->named = i;
    entry->hash = known[i] = number();
    named[entry->named].value = i;
    memset(named[entry->named].name, i, sizeof named[entry->named].name);
    entry->next = chains[entry->hash % CHAINS];
    chains[entry->hash % CHAINS] = entry;
  }
  long sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    unsigned hash = known[number() % ENTRIES];
    struct entry *entry = chains[hash % CHAINS];
    while (entry && entry->hash != hash) // <-- cured
      entry = entry->next;
    if (entry)
      sum += named[entry->named].value + named[entry->named].name[i % 64];
  }
  printf("%ld\n", sum);
  return 0;
}
