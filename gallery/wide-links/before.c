// A union-find forest, kept as nodes that point at each other. The disease: two pointers and a long where 32
// bits do.
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 60000, FINDS = 400000 };

struct node {
  struct node *parent;
  struct node *newest;
  long rank;
};

static struct node *nodes;

static struct node *find(struct node *node) {
  while (node->parent != node) // <-- hot
    node = node->parent;
  return node;
}

int main(void) {
  nodes = malloc(NODES * sizeof *nodes);
  if (!nodes)
    abort();
  unsigned seed = 3;
  for (int i = 0; i < NODES; i++) {
    nodes[i].parent = nodes[i].newest = &nodes[i];
    nodes[i].rank = 0;
  }
  for (int i = 0; i < FINDS; i++) {
    seed = seed * 1664525 + 1013904223;
    struct node *one = find(&nodes[(seed >> 8) % NODES]);
    seed = seed * 1664525 + 1013904223;
    struct node *other = find(&nodes[(seed >> 8) % NODES]);
    if (one == other || i % 8)
      continue;
    struct node *higher = one->rank < other->rank ? other : one, *lower = higher == one ? other : one;
    lower->parent = higher;
    higher->newest = lower;
    higher->rank += higher->rank == lower->rank;
  }
  long deep = 0;
  for (int i = 0; i < NODES; i++)
    deep += nodes[i].rank + (nodes[i].newest - nodes) % 3;
  printf("%ld\n", deep);
  return 0;
}
