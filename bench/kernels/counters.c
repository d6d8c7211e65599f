// Two threads, each incrementing its own counters: nothing but loads and stores that hit.
// Argument: rounds.
#include "kernel.h"

#include <pthread.h>

enum { COUNTERS = 256, STEPS = 40000000 / 8 };

struct worker {
  pthread_t thread;
  long rounds;
  uint64_t *counts;
};

static void *work(void *argument) {
  struct worker *worker = argument;
  uint64_t *counts = worker->counts;
  for (long round = 0; round < worker->rounds; round++)
    for (uint32_t i = 0; i < STEPS; i++)
      counts[(i * 2654435761u) >> 24] += i;
  return NULL;
}

int main(int argc, char **argv) {
  long rounds = kernel_rounds(argc, argv);
  struct worker workers[2];
  for (int t = 0; t < 2; t++) {
    workers[t].rounds = rounds;
    workers[t].counts = kernel_allocate(COUNTERS, sizeof(uint64_t));
    if (pthread_create(&workers[t].thread, NULL, work, &workers[t]) != 0)
      abort();
  }
  uint64_t sum = 0;
  for (int t = 0; t < 2; t++) {
    pthread_join(workers[t].thread, NULL);
    for (int i = 0; i < COUNTERS; i++)
      sum = sum * 31 + workers[t].counts[i];
  }
  printf("%llu\n", (unsigned long long)sum);
  return 0;
}
