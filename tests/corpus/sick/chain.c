// Walks a list whose nodes were allocated in one order and linked in another: each step waits for a line from
// far away.
#include <stdio.h>
#include <stdlib.h>

enum { NODES = 40000, WALKS = 6 };
struct node {
  struct node *next;
  long value, weight, spare;
};

static struct node *order[NODES];

int main(void) {
  for (long i = 0; i < NODES; i++) {
    order[i] = malloc(sizeof(struct node));
    if (!order[i])
      abort();
    *order[i] = (struct node){NULL, i, i % 7, 0};
  }
  unsigned seed = 7;
  for (int i = NODES - 1; i > 0; i--) {
    seed = seed * 1664525 + 1013904223;
    const int other = (int)((seed >> 8) % (unsigned)(i + 1));
    struct node *node = order[i];
    order[i] = order[other];
    order[other] = node;
  }
  for (int i = 0; i + 1 < NODES; i++)
    order[i]->next = order[i + 1];
  long sum = 0;
  for (int walk = 0; walk < WALKS; walk++)
    for (const struct node *node = order[0]; node; node = node->next)
      sum += node->value * node->weight + node->spare;
  printf("%ld\n", sum);
  for (int i = 0; i < NODES; i++)
    free(order[i]);
  return 0;
}
