// Looks up points at random and uses all of each: a point is within one line.
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 100000, LOOKUPS = 400000 };
struct point {
  double x, y, z, mass;
};

int main(void) {
  struct point *points = aligned_alloc(64, POINTS * sizeof *points);
  if (!points)
    abort();
  for (int i = 0; i < POINTS; i++)
    points[i] = (struct point){i, i % 7, i % 11, 1 + i % 3};
  unsigned seed = 1;
  double sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    const struct point *point = &points[(seed = seed * 1103515245 + 12345) % POINTS];
    sum += point->mass * (point->x + point->y + point->z);
  }
  printf("%.0f\n", sum);
  free(points);
  return 0;
}
