// Cheapest routes by network simplex with block pricing. The disease: each arc is a structure of 64
// bytes, the scan asks every arc for its state, and so fetches a whole cache line for four bytes.
#include "network.h"

#include <stdio.h>

struct node {
  int64_t potential;
  struct arc *tree_arc;
};

struct arc {
  struct node *tail, *head;
  struct arc *next_out, *next_in;
  int64_t cost;
  int64_t flow;
  int64_t original_cost;
  int32_t state;
  int32_t index;
};

struct network {
  struct node *nodes;
  struct arc *arcs;
};

static struct network build_network(void) {
  struct network net = {must_allocate(NODES, sizeof(struct node)), must_allocate(ARCS, sizeof(struct arc))};
  uint64_t seed = 42;
  for (int i = 0; i < ARCS; i++) {
    struct road road = next_road(&seed, i);
    struct arc *arc = &net.arcs[i];
    arc->tail = &net.nodes[road.from];
    arc->head = &net.nodes[road.to];
    arc->cost = arc->original_cost = road.cost;
    arc->state = road.state;
    arc->index = i;
  }
  for (int i = 1; i < NODES; i++) {
    net.nodes[i].tree_arc = &net.arcs[i - 1];
    net.nodes[i].potential = net.nodes[i - 1].potential + net.arcs[i - 1].cost;
  }
  return net;
}

// The arc of [arc, end) that would shorten a route most, or NULL.
__attribute__((noinline)) static struct arc *price_block(struct arc *arc, const struct arc *end) {
  struct arc *best = NULL;
  int64_t best_reduced_cost = 0;
  for (; arc < end; arc++) {
    if (arc->state > IN_TREE) { // <-- hot
      int64_t reduced_cost = arc->cost + arc->tail->potential - arc->head->potential;
      if (reduced_cost < best_reduced_cost) {
        best_reduced_cost = reduced_cost;
        best = arc;
      }
    }
  }
  return best;
}

// The arc becomes its head's way in; the arc that was leaves the tree.
static void pivot(struct arc *entering) {
  struct node *head = entering->head;
  if (head->tree_arc)
    head->tree_arc->state = AT_LOWER;
  head->tree_arc = entering;
  head->potential = entering->tail->potential + entering->cost;
  entering->state = IN_TREE;
  entering->flow++;
}

int main(void) {
  struct network net = build_network();
  long pivots = 0;
  for (int pass = 0; pass < PASSES; pass++)
    for (int first = 0; first < ARCS; first += BLOCK) {
      struct arc *entering = price_block(net.arcs + first, net.arcs + first + BLOCK);
      if (entering) {
        pivot(entering);
        pivots++;
      }
    }
  int64_t sum = 0;
  for (int i = 0; i < NODES; i++)
    sum += net.nodes[i].potential;
  printf("%ld pivots, potentials sum to %lld\n", pivots, (long long)sum);
  free(net.arcs);
  free(net.nodes);
  return 0;
}
