// The same forest. The cure: indices in the place of pointers, and a node is 12 bytes, where it was 24.
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 60000, FINDS = 400000 };

struct node {
  unsigned parent;
  unsigned newest;
  int rank;
};

static struct node *nodes;

static unsigned find(unsigned node) {
  while (nodes[node].parent != node) // <-- cured
    node = nodes[node].parent;
  return node;
}

int main(void) {
  nodes = malloc(NODES * sizeof *nodes);
  if (!nodes)
    abort();
  unsigned seed = 3;
  for (unsigned i = 0; i < NODES; i++) {
    nodes[i].parent = nodes[i].newest = i;
    nodes[i].rank = 0;
  }
  for (int i = 0; i < FINDS; i++) {
    seed = seed * 1664525 + 1013904223;
    unsigned one = find((seed >> 8) % NODES);
    seed = seed * 1664525 + 1013904223;
    unsigned other = find((seed >> 8) % NODES);
    if (one == other || i % 8)
      continue;
    unsigned higher = nodes[one].rank < nodes[other].rank ? other : one, lower = higher == one ? other : one;
    nodes[lower].parent = higher;
    nodes[higher].newest = lower;
    nodes[higher].rank += nodes[higher].rank == nodes[lower].rank;
  }
  long deep = 0;
  for (int i = 0; i < NODES; i++)
    deep += nodes[i].rank + nodes[i].newest % 3;
  printf("%ld\n", deep);
  return 0;
}
