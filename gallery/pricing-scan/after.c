// The same routes by the same pivots. The cure: what the scan reads lies in arrays of its own, so a
// cache line holds the states of 64 arcs; what it does not read stays in a structure beside them.
#include "network.h"

#include <stdio.h>

struct node {
  int64_t potential;
  int tree_arc;
};

struct arc_rest {
  int next_out, next_in;
  int64_t flow;
  int64_t original_cost;
};

struct arcs {
  int8_t *state;
  int32_t *cost, *tail, *head;
  struct arc_rest *rest;
};

struct network {
  struct node *nodes;
  struct arcs arcs;
};

static struct network build_network(void) {
  struct network net = {must_allocate(NODES, sizeof(struct node)),
                        {must_allocate(ARCS, sizeof(int8_t)), must_allocate(ARCS, sizeof(int32_t)),
                         must_allocate(ARCS, sizeof(int32_t)), must_allocate(ARCS, sizeof(int32_t)),
                         must_allocate(ARCS, sizeof(struct arc_rest))}};
  struct arcs *arcs = &net.arcs;
  uint64_t seed = 42;
  for (int i = 0; i < ARCS; i++) {
    struct road road = next_road(&seed, i);
    arcs->tail[i] = road.from;
    arcs->head[i] = road.to;
    arcs->cost[i] = road.cost;
    arcs->state[i] = (int8_t)road.state;
    arcs->rest[i].original_cost = road.cost;
  }
  net.nodes[0].tree_arc = -1;
  for (int i = 1; i < NODES; i++) {
    net.nodes[i].tree_arc = i - 1;
    net.nodes[i].potential = net.nodes[i - 1].potential + arcs->cost[i - 1];
  }
  return net;
}

// The arc of [first, end) that would shorten a route most, or -1.
__attribute__((noinline)) static int price_block(const struct arcs *arcs, const struct node *nodes, int first,
                                                 int end) {
  int best = -1;
  int64_t best_reduced_cost = 0;
  for (int i = first; i < end; i++) {
    if (arcs->state[i] > IN_TREE) { // <-- cured
      int64_t reduced_cost = arcs->cost[i] + nodes[arcs->tail[i]].potential - nodes[arcs->head[i]].potential;
      if (reduced_cost < best_reduced_cost) {
        best_reduced_cost = reduced_cost;
        best = i;
      }
    }
  }
  return best;
}

// The arc becomes its head's way in; the arc that was leaves the tree.
static void pivot(struct network *net, int entering) {
  struct arcs *arcs = &net->arcs;
  struct node *head = &net->nodes[arcs->head[entering]];
  if (head->tree_arc >= 0)
    arcs->state[head->tree_arc] = AT_LOWER;
  head->tree_arc = entering;
  head->potential = net->nodes[arcs->tail[entering]].potential + arcs->cost[entering];
  arcs->state[entering] = IN_TREE;
  arcs->rest[entering].flow++;
}

int main(void) {
  struct network net = build_network();
  long pivots = 0;
  for (int pass = 0; pass < PASSES; pass++)
    for (int first = 0; first < ARCS; first += BLOCK) {
      int entering = price_block(&net.arcs, net.nodes, first, first + BLOCK);
      if (entering >= 0) {
        pivot(&net, entering);
        pivots++;
      }
    }
  int64_t sum = 0;
  for (int i = 0; i < NODES; i++)
    sum += net.nodes[i].potential;
  printf("%ld pivots, potentials sum to %lld\n", pivots, (long long)sum);
  free(net.arcs.state);
  free(net.arcs.cost);
  free(net.arcs.tail);
  free(net.arcs.head);
  free(net.arcs.rest);
  free(net.nodes);
  return 0;
}
