// A list of 64 MB whose nodes lie in no order, one to a line, walked again and again: every access
// misses. Argument: rounds.
#include "kernel.h"

struct node {
  struct node *next;
  char rest[56];
};

enum { NODES = 1 << 20 };

int main(int argc, char **argv) {
  long rounds = kernel_rounds(argc, argv);
  struct node *nodes = kernel_allocate(NODES, sizeof *nodes);
  uint64_t seed = 5;
  for (int i = 0; i < NODES; i++)
    nodes[i].next = &nodes[i];
  // Sattolo's shuffle: one cycle through all of them.
  for (int i = NODES - 1; i > 0; i--) {
    int other = (int)(kernel_random(&seed) % (uint32_t)i);
    struct node *next = nodes[i].next;
    nodes[i].next = nodes[other].next;
    nodes[other].next = next;
  }
  struct node *node = nodes;
  for (long round = 0; round < rounds; round++)
    for (int i = 0; i < NODES; i++)
      node = node->next;
  printf("%ld\n", (long)(node - nodes));
  return 0;
}
