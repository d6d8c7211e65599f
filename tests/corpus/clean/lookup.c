// Searches a sorted table that is laid out in the order of the search.
#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 1 << 15, SEARCHES = 60000 };
static unsigned *tree;
static unsigned next_key;

static void fill(unsigned node) {
  if (node >= KEYS)
    return;
  fill(2 * node);
  tree[node] = next_key += 3;
  fill(2 * node + 1);
}

int main(void) {
  tree = malloc(KEYS * sizeof *tree);
  if (!tree)
    abort();
  fill(1);
  unsigned seed = 1, found = 0;
  for (int i = 0; i < SEARCHES; i++) {
    unsigned key = (seed = seed * 1103515245 + 12345) >> 8, node = 1;
    key %= 3 * KEYS;
    while (node < KEYS && tree[node] != key)
      node = 2 * node + (tree[node] < key);
    found += node < KEYS;
  }
  printf("%u\n", found);
  free(tree);
  return 0;
}
