// Lists whose nodes lie in order or not, walked one after the other or eight at once.
#include "truth.h"

enum { NODES = 1 << 19, CHAINS = 8 };

struct node {
  struct node *next;
  long weight;
  long unused[6];
};

static APART long walk_one(const struct node *node) {
  long sum = 0;
  for (; node; node = node->next)
    sum += node->weight;
  return sum;
}

static APART long walk_other(const struct node *node) {
  long sum = 0;
  for (; node; node = node->next)
    sum ^= node->weight;
  return sum;
}

static APART long walk_together(struct node *const *heads) {
  const struct node *at[CHAINS];
  for (int chain = 0; chain < CHAINS; chain++)
    at[chain] = heads[chain];
  long sum = 0;
  while (at[0]) {
    for (int chain = 0; chain < CHAINS; chain++) {
      sum += at[chain]->weight;
      at[chain] = at[chain]->next;
    }
  }
  return sum;
}

// Eight lists of equal length; `heads` are also the first nodes of the eight parts of one order.
static APART void build(struct node **heads, int is_shuffled, uint64_t *seed) {
  struct node *nodes = kernel_allocate(NODES, sizeof *nodes);
  uint32_t *order = truth_order(NODES, is_shuffled, seed);
  for (uint32_t i = 0; i < NODES; i++) {
    nodes[order[i]].weight = i;
    int is_last = (i + 1) % (NODES / CHAINS) == 0;
    nodes[order[i]].next = is_last ? NULL : &nodes[order[i + 1]];
  }
  for (int chain = 0; chain < CHAINS; chain++)
    heads[chain] = &nodes[order[chain * (NODES / CHAINS)]];
  free(order);
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 1;
  long sum = 0;
  struct node *heads[CHAINS] = {NULL};
  struct node *others[CHAINS] = {NULL};
  build(heads, !truth_is(argv, "ordered"), &seed);
  if (truth_is(argv, "both"))
    build(others, 0, &seed);
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    if (truth_is(argv, "together")) {
      sum += walk_together(heads);
      continue;
    }
    for (int chain = 0; chain < CHAINS; chain++) {
      sum += walk_one(heads[chain]);
      if (truth_is(argv, "both"))
        sum += walk_other(others[chain]);
    }
  }
  printf("%ld\n", sum);
}
