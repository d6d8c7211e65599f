// The same table, as it should be: hashes of a chain lie behind each other, and whoever has found one has the
// number of its name and value.
#include <stdio.h>
#include <string.h>

enum { CHAINS = 1 << 12, ENTRIES = 24000, LOOKUPS = 120000 };

struct named {
  char name[64];
  long value;
};

static int ends[CHAINS + 1];
static unsigned hashes[ENTRIES];
static struct named named[ENTRIES];

static unsigned seed = 17;

static unsigned number(void) {
  seed = seed * 1664525 + 1013904223;
  return seed >> 8;
}

int main(void) {
  static unsigned known[ENTRIES];
  for (int i = 0; i < ENTRIES; i++) {
    known[i] = number();
    ends[known[i] % CHAINS]++;
  }
  for (int chain = 0; chain < CHAINS; chain++)
    ends[chain + 1] += ends[chain];
  // From the back, so that the newest entry of a chain is its first, and a chain begins where it ends.
  for (int i = 0; i < ENTRIES; i++) {
    const int at = --ends[known[i] % CHAINS];
    hashes[at] = known[i];
    named[at].value = i;
    memset(named[at].name, i, sizeof named[at].name);
  }
  long sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    unsigned hash = known[number() % ENTRIES];
    int at = ends[hash % CHAINS];
    const int end = ends[hash % CHAINS + 1];
    while (at < end && hashes[at] != hash)
      at++;
    if (at < end)
      sum += named[at].value + named[at].name[i % 64];
  }
  printf("%ld\n", sum);
  return 0;
}
