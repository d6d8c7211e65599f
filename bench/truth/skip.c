// Lookups in a skip list.
#include "truth.h"

enum { KEYS = 1 << 18, HEIGHT = 12 };

struct node {
  uint32_t key;
  uint32_t height;
  struct node *next[];
};

static APART struct node *build(uint64_t *seed) {
  // Nodes lie where a shuffle puts them, as after many insertions.
  size_t most = sizeof(struct node) + 4 * sizeof(struct node *);
  struct node *head = kernel_allocate(1, sizeof(struct node) + HEIGHT * sizeof(struct node *));
  char *memory = kernel_allocate(KEYS, most);
  uint32_t *order = truth_order(KEYS, 1, seed);
  struct node *last[HEIGHT];
  for (int level = 0; level < HEIGHT; level++)
    last[level] = head;
  head->height = HEIGHT;
  for (uint32_t key = 0; key < KEYS; key++) {
    uint32_t height = 1;
    for (uint32_t bits = key + 1; bits % 4 == 0 && height < HEIGHT; bits /= 4)
      height++;
    size_t bytes = sizeof(struct node) + height * sizeof(struct node *);
    struct node *node = bytes > most ? kernel_allocate(1, bytes) : (void *)(memory + order[key] * most);
    node->key = key;
    node->height = height;
    for (uint32_t level = 0; level < height; level++) {
      last[level]->next[level] = node;
      last[level] = node;
    }
  }
  return head;
}

static APART const struct node *find(const struct node *node, uint32_t key) {
  for (int level = HEIGHT - 1; level >= 0; level--) {
    while (node->next[level] && node->next[level]->key <= key)
      node = node->next[level];
  }
  return node;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 13;
  const struct node *head = build(&seed);
  uint64_t sum = 0;
  for (long i = 0; i < rounds * 10000; i++)
    sum += find(head, kernel_random(&seed) % KEYS)->height;
  printf("%llu\n", (unsigned long long)sum);
}
