// The same forest, as it should be: links lie in an array of their own, and a search goes over nothing else.
#include <stdio.h>

enum { NODES = 60000, FINDS = 400000 };

struct root {
  unsigned newest;
  int rank;
};

static unsigned parents[NODES];
static struct root roots[NODES];

static unsigned find(unsigned node) {
  while (parents[node] != node)
    node = parents[node];
  return node;
}

int main(void) {
  unsigned seed = 3;
  for (unsigned i = 0; i < NODES; i++)
    parents[i] = roots[i].newest = i;
  for (int i = 0; i < FINDS; i++) {
    seed = seed * 1664525 + 1013904223;
    unsigned one = find((seed >> 8) % NODES);
    seed = seed * 1664525 + 1013904223;
    unsigned other = find((seed >> 8) % NODES);
    if (one == other || i % 8)
      continue;
    unsigned higher = roots[one].rank < roots[other].rank ? other : one, lower = higher == one ? other : one;
    parents[lower] = higher;
    roots[higher].newest = lower;
    roots[higher].rank += roots[higher].rank == roots[lower].rank;
  }
  long deep = 0;
  for (int i = 0; i < NODES; i++)
    deep += roots[i].rank + roots[i].newest % 3;
  printf("%ld\n", deep);
  return 0;
}
