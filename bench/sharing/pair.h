// Two threads that start together, each told which it is, and each on a processor of its own if there are
// two. PADDED puts what they use into lines of their own.
#ifndef BENCH_SHARING_PAIR_H
#define BENCH_SHARING_PAIR_H

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef PADDED
enum { APART = 256 };
#else
enum { APART = 8 };
#endif

// Nobody writes it while the threads run: nothing that they write may lie beside it.
static struct {
  _Alignas(256) long turns;
} bound;
static _Alignas(256) pthread_barrier_t gate;

static void work(long self, long turns);

// The scheduler may leave both where they were created for as long as they run: then nobody takes a line.
static void pin(long self) {
  cpu_set_t may, mine;
  if (sched_getaffinity(0, sizeof may, &may) || CPU_COUNT(&may) < 2)
    return;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &may) && self-- == 0) {
      CPU_ZERO(&mine);
      CPU_SET(cpu, &mine);
      pthread_setaffinity_np(pthread_self(), sizeof mine, &mine);
    }
}

static void *begin(void *self) {
  pin((long)self);
  pthread_barrier_wait(&gate);
  work((long)self, bound.turns);
  return NULL;
}

static void pair(int count, char **words) {
  bound.turns = count > 1 ? strtol(words[1], NULL, 10) : 1000;
  pthread_barrier_init(&gate, NULL, 2);
  pthread_t threads[2];
  for (long i = 0; i < 2; i++)
    if (pthread_create(&threads[i], NULL, begin, (void *)i))
      abort();
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
}

#endif
