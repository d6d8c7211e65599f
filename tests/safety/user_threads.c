/* User threads that a timer's handler switches. Usage: user_threads swap|jump|assembly quiet|timer.
 *
 * All accesses here are the same, however often and where the workers are interrupted: what switches them is
 * not instrumented (switches.c). */
#include <stdio.h>
#include <string.h>

#include "objects.h"
#include "switches.h"

enum { NODES = 512, STEPS = 100000 };

static struct node {
  struct node *next;
  long value;
} nodes[WORKERS][NODES];
static long sums[WORKERS];

__attribute__((noinline)) static long walk(struct node *node, long steps) {
  long sum = 0;
  for (long i = 0; i < steps; i++) {
    sum += node->value;
    node->value = i;
    node = node->next;
  }
  return sum;
}

void work(int worker) { sums[worker] = walk(nodes[worker], STEPS); }

int main(int argc, char **argv) {
  OBJECT(nodes);
  for (int worker = 0; worker < WORKERS; worker++)
    for (int i = 0; i < NODES; i++)
      nodes[worker][i] = (struct node){&nodes[worker][(i * 37 + 1) % NODES], i + worker};
  run_workers(argc > 1 ? argv[1] : "swap", argc > 2 && !strcmp(argv[2], "timer"));
  for (int worker = 0; worker < WORKERS; worker++)
    printf("%ld\n", sums[worker]);
  return 0;
}
