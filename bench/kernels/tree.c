// A binary search tree of small allocations: built, searched, summed and freed. Argument: rounds.
#include "kernel.h"

struct node {
  struct node *left, *right;
  uint32_t key, hits;
};

enum { KEYS = 60000, SEARCHES = 150000 };

static struct node **place(struct node **at, uint32_t key) {
  while (*at && (*at)->key != key)
    at = key < (*at)->key ? &(*at)->left : &(*at)->right;
  return at;
}

static uint64_t sum_and_free(struct node *node) {
  if (!node)
    return 0;
  uint64_t sum = node->hits + sum_and_free(node->left) + sum_and_free(node->right);
  free(node);
  return sum;
}

int main(int argc, char **argv) {
  long rounds = kernel_rounds(argc, argv);
  uint64_t seed = 5, sum = 0;
  for (long round = 0; round < rounds; round++) {
    struct node *root = NULL;
    for (int i = 0; i < KEYS; i++) {
      uint32_t key = kernel_random(&seed) % (KEYS * 4);
      struct node **at = place(&root, key);
      if (!*at) {
        *at = kernel_allocate(1, sizeof **at);
        (*at)->key = key;
      }
      (*at)->hits++;
    }
    for (int i = 0; i < SEARCHES; i++) {
      struct node *node = *place(&root, kernel_random(&seed) % (KEYS * 4));
      if (node)
        node->hits++;
    }
    sum += sum_and_free(root);
  }
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
