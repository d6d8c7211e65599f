/* Threads that work before their image's constructors have run, so before it is announced: whoever reads what
 * they recorded has to find the image first, for all of them at once. A library's constructor starts them. */
#ifdef LIBRARY
void before_constructors(void);

__attribute__((constructor)) static void begin(void) { before_constructors(); }
#else
#include <pthread.h>

#include "objects.h"

enum { THREADS = 8, ROUNDS = 40000 };

int cells[THREADS][64];
static pthread_barrier_t together;

static void *work(void *number) {
  int *own = cells[(long)number];
  pthread_barrier_wait(&together);
  unsigned place = 1;
  for (int i = 0; i < ROUNDS; i++) {
    place = place * 1664525u + 1013904223u;
    own[place >> 26] += i;
  }
  return 0;
}

void before_constructors(void) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&together, 0, THREADS);
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], 0, work, (void *)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], 0);
}

int main(void) {
  OBJECT(cells);
  unsigned sum = 0;
  for (int i = 0; i < THREADS; i++)
    for (int j = 0; j < 64; j++)
      sum = sum * 31 + (unsigned)cells[i][j];
  printf("%x\n", sum);
  return 0;
}
#endif
