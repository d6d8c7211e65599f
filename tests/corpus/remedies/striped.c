// Two threads write every other int of a large array: a line for each would make it sixteen times as large.
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 2, CELLS = 1 << 14, ROUNDS = 12 };
static volatile int cells[CELLS];

static void *work(void *argument) {
  for (int round = 0; round < ROUNDS; round++)
    for (long i = (long)argument; i < CELLS; i += THREADS)
      cells[i] = cells[i] * 3 + round;
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, work, (void *)i))
      return 1;
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  printf("%d\n", cells[1]);
  return 0;
}
