// The same tree, as it should be: nodes lie in an array, level by level, and a search that goes on is likely
// to find the next one in a cache.
#include <stdio.h>
#include <string.h>

enum { NODES = 30000, SEARCHES = 120000 };

struct record {
  char bytes[104];
};

struct node {
  unsigned key;
  int child[2];
  int record;
};

static struct record records[NODES];
static struct node grown[NODES], nodes[NODES];

static unsigned seed = 11;

static unsigned number(void) {
  seed = seed * 1664525 + 1013904223;
  return seed >> 8;
}

static int make(unsigned key) {
  static int made;
  grown[made] = (struct node){key, {-1, -1}, made};
  memset(records[made].bytes, (int)key, sizeof records[made].bytes);
  return made++;
}

int main(void) {
  int root = make(1u << 23);
  for (int i = 1; i < NODES; i++) {
    unsigned key = number();
    int *at = &root;
    while (*at >= 0)
      at = &grown[*at].child[key > grown[*at].key];
    *at = make(key);
  }
  int made = 1;
  nodes[0] = grown[root];
  for (int i = 0; i < made; i++)
    for (int side = 0; side < 2; side++)
      if (nodes[i].child[side] >= 0) {
        nodes[made] = grown[nodes[i].child[side]];
        nodes[i].child[side] = made++;
      }
  long sum = 0;
  for (int i = 0; i < SEARCHES; i++) {
    unsigned key = number();
    int node = 0;
    while (node >= 0 && nodes[node].key != key) {
      sum += nodes[node].key & 1;
      node = nodes[node].child[key > nodes[node].key];
    }
    if (node >= 0)
      sum += records[nodes[node].record].bytes[i % 104];
  }
  printf("%ld\n", sum);
  return 0;
}
