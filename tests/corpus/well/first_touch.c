// Two threads jump about in their halves of an array, each of which has filled its own: on a machine with two
// memory nodes each half lies in the node of its thread.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

enum { COUNT = 1 << 15, HALF = COUNT / 2, STEPS = 4 * HALF };

static long table[COUNT] __attribute__((aligned(4096)));
static _Atomic int ready;

static void fill(long from, long to) {
  for (long i = from; i < to; i++)
    table[i] = from + (i * 4097 + 1031) % (to - from);
}

static long walk(long at) {
  for (int step = 0; step < STEPS; step++)
    at = table[at];
  return at;
}

static void *second(void *sum) {
  while (!atomic_load(&ready))
    sched_yield();
  fill(HALF, COUNT);
  *(long *)sum = walk(HALF);
  return NULL;
}

int main(void) {
  pthread_t thread;
  long other = 0;
  if (pthread_create(&thread, NULL, second, &other) != 0)
    return 1;
  fill(0, HALF);
  atomic_store(&ready, 1);
  long sum = walk(0);
  pthread_join(thread, NULL);
  printf("%ld\n", sum + other);
  return 0;
}
