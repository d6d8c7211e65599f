// Nodes of four pointers into one array, which a walk reads whole: with indices, twice as many fit into a
// cache.
#include <stdio.h>

enum { NODES = 1 << 14, STEPS = 200000 };
struct node {
  struct node *left, *right, *up, *next;
};
static struct node nodes[NODES];

int main(void) {
  unsigned seed = 9;
  for (int i = 0; i < NODES; i++) {
    struct node *to[4];
    for (int k = 0; k < 4; k++) {
      seed = seed * 1664525 + 1013904223;
      to[k] = &nodes[(seed >> 8) % NODES];
    }
    nodes[i] = (struct node){to[0], to[1], to[2], to[3]};
  }
  const struct node *at = nodes;
  for (int i = 0; i < STEPS; i++) {
    seed = seed * 1664525 + 1013904223;
    const struct node *one = seed >> 31 ? at->left : at->right, *other = seed >> 30 & 1 ? at->up : at->next;
    at = one > other ? one : other;
    if ((i & 7) == 0)
      at = &nodes[(seed >> 8) % NODES];
  }
  printf("%ld\n", (long)(at - nodes));
  return 0;
}
