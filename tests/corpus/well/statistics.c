// The same, but each thread counts in a register and adds its count to the statistics once.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, KEYS = 1024, READS = 40000 };
struct store {
  int *values;
  unsigned mask;
};
static struct store store;
static atomic_ulong gets;

static int get(unsigned key) { return store.values[key & store.mask]; }

static void *read_all(void *argument) {
  unsigned key = (unsigned)(long)argument;
  long sum = 0;
  for (int i = 0; i < READS; i++) {
    key = key * 1664525 + 1013904223;
    sum += get(key >> 8);
  }
  atomic_fetch_add_explicit(&gets, READS, memory_order_relaxed);
  return (void *)sum;
}

int main(void) {
  pthread_t threads[THREADS];
  store.values = malloc(KEYS * sizeof *store.values);
  store.mask = KEYS - 1;
  if (!store.values)
    return 1;
  for (int i = 0; i < KEYS; i++)
    store.values[i] = i;
  for (long i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, read_all, (void *)(i + 1)))
      return 1;
  long all = 0;
  for (int i = 0; i < THREADS; i++) {
    void *sum;
    pthread_join(threads[i], &sum);
    all += (long)sum;
  }
  printf("%ld %lu\n", all, atomic_load(&gets));
  free(store.values);
  return 0;
}
