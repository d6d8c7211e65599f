// The same, with a cache line and more for each counter.
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 60000 };
static struct {
  _Alignas(128) volatile long hits;
} counters[THREADS];
static unsigned char text[4096];

static void *count(void *argument) {
  const long me = (long)argument;
  for (int i = 0; i < ROUNDS; i++)
    if (text[(i * 7 + me) % 4096] < 128)
      counters[me].hits++;
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < 4096; i++)
    text[i] = (unsigned char)(i * 31);
  for (long i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, count, (void *)i))
      return 1;
  long all = 0;
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    all += counters[i].hits;
  }
  printf("%ld\n", all);
  return 0;
}
