// The same, but sums live in registers while a thread works, and arguments are written once.
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
  long long sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  const struct point *points = work->points;
  for (int i = 0, count = work->count; i < count; i++) {
    const long long x = points[i].x, y = points[i].y;
    sx += x;
    sxx += x * x;
    sy += y;
    syy += y * y;
    sxy += x * y;
  }
  work->sx = sx;
  work->sy = sy;
  work->sxx = sxx;
  work->syy = syy;
  work->sxy = sxy;
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
