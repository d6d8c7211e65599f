// Four threads sum up what points would gain at each of a few centres, in work memory that they share: each
// has a part of it, 24 bytes long.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, POINTS = 20000, CENTRES = 3, STRIDE = CENTRES };
static volatile double *work;
static float points[THREADS * POINTS];

static void *gain(void *argument) {
  const long me = (long)argument;
  volatile double *mine = work + me * STRIDE;
  for (int i = 0; i < POINTS; i++) {
    const float at = points[me * POINTS + i];
    mine[(int)at % CENTRES] += at;
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS * POINTS; i++)
    points[i] = (float)(i % 1009) / 7;
  work = calloc(THREADS * STRIDE, sizeof *work);
  if (!work)
    return 1;
  for (long i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, gain, (void *)i))
      return 1;
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  double all = 0;
  for (int i = 0; i < THREADS * STRIDE; i++)
    all += work[i];
  printf("%.1f\n", all);
  free((void *)work);
  return 0;
}
