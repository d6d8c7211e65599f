// Each thread sums up its points in the arguments that it was given: 64 bytes each, side by side. Compiled
// without optimisation, all sums are stored with each point.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, POINTS = 20000 };
struct point {
  short x, y;
};
struct work {
  pthread_t thread;
  const struct point *points;
  int count;
  long long sx, sy, sxx, syy, sxy;
};

static void *sum(void *argument) {
  struct work *work = argument;
  for (int i = 0; i < work->count; i++) {
    const long long x = work->points[i].x, y = work->points[i].y;
    work->sx += x;
    work->sxx += x * x;
    work->sy += y;
    work->syy += y * y;
    work->sxy += x * y;
  }
  return NULL;
}

int main(void) {
  static struct point points[THREADS * POINTS];
  for (int i = 0; i < THREADS * POINTS; i++)
    points[i] = (struct point){(short)(i % 101), (short)(i % 89)};
  struct work *works = calloc(THREADS, sizeof *works);
  if (!works)
    return 1;
  for (int i = 0; i < THREADS; i++) {
    works[i].points = points + i * POINTS;
    works[i].count = POINTS;
    if (pthread_create(&works[i].thread, NULL, sum, &works[i]))
      return 1;
  }
  long long sxy = 0;
  for (int i = 0; i < THREADS; i++) {
    pthread_join(works[i].thread, NULL);
    sxy += works[i].sxy;
  }
  printf("%lld\n", sxy);
  free(works);
  return 0;
}
