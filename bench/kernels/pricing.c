// Pricing over 96 MB of arcs with pointers into a node array, and the nodes' refresh down a tree: the
// memory behaviour of a network simplex. Argument: rounds.
#include "kernel.h"

struct node {
  int64_t potential;
  struct node *parent;
  int64_t depth;
};

struct arc {
  struct node *tail, *head;
  int64_t cost, flow;
  struct arc *next_out, *next_in;
  int64_t original_cost;
  int32_t state, index;
};

enum { ARCS = 1500000, NODES = 40000 };

int main(int argc, char **argv) {
  long rounds = kernel_rounds(argc, argv);
  struct node *nodes = kernel_allocate(NODES, sizeof *nodes);
  struct arc *arcs = kernel_allocate(ARCS, sizeof *arcs);
  uint64_t seed = 1;
  for (int i = 1; i < NODES; i++)
    nodes[i].parent = &nodes[kernel_random(&seed) % (uint32_t)i];
  for (int i = 0; i < ARCS; i++) {
    arcs[i].tail = &nodes[kernel_random(&seed) % NODES];
    arcs[i].head = &nodes[kernel_random(&seed) % NODES];
    arcs[i].cost = kernel_random(&seed) % 10000;
    arcs[i].state = (int32_t)(kernel_random(&seed) % 4);
  }
  int64_t sum = 0;
  for (long round = 0; round < rounds; round++) {
    struct arc *best = &arcs[0];
    int64_t lowest = 0;
    for (struct arc *arc = arcs; arc < arcs + ARCS; arc++)
      if (arc->state > 0) {
        int64_t reduced = arc->cost + arc->tail->potential - arc->head->potential;
        if (reduced < lowest) {
          lowest = reduced;
          best = arc;
        }
      }
    best->state = 0;
    best->head->potential += 100;
    for (int i = 1; i < NODES; i++)
      nodes[i].depth = nodes[i].parent->depth + nodes[i].potential;
    sum += lowest + nodes[NODES - 1].depth;
  }
  printf("%lld\n", (long long)sum);
  return 0;
}
