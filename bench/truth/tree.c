// Lookups in a binary search tree: nodes where the allocator put them, in the order of a shuffle or of the
// levels.
#include "truth.h"

enum { KEYS = (1 << 19) - 1 };

struct node {
  uint32_t key;
  uint32_t hits;
  struct node *left;
  struct node *right;
};

struct places {
  struct node *nodes;
  const uint32_t *order;
};

// The heap's shape: children of number i are 2i + 1 and 2i + 2. Keys count in order from `*next` on.
static struct node *fill(struct places places, uint32_t number, uint32_t *next) {
  if (number >= KEYS)
    return NULL;
  struct node *node = &places.nodes[places.order[number]];
  node->left = fill(places, 2 * number + 1, next);
  node->key = (*next)++;
  node->right = fill(places, 2 * number + 2, next);
  return node;
}

static APART struct node *find(struct node *node, uint32_t key) {
  while (node && node->key != key)
    node = key < node->key ? node->left : node->right;
  return node;
}

static APART uint64_t lookups(struct node *root, long rounds, uint64_t *seed) {
  uint64_t sum = 0;
  for (long i = 0; i < rounds * 10000; i++) {
    struct node *found = find(root, kernel_random(seed) % KEYS);
    sum += found->hits++;
  }
  return sum;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 2;
  struct places places = {kernel_allocate(KEYS, sizeof(struct node)), NULL};
  places.order = truth_order(KEYS, truth_is(argv, "scattered"), &seed);
  uint32_t next = 0;
  struct node *root = fill(places, 0, &next);
  printf("%llu\n", (unsigned long long)lookups(root, rounds, &seed));
}
