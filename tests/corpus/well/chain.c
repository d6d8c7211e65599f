// The same with nodes that lie in the order of the walk.
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
