// The same edges. The cure: a point is one record.
#include <stdio.h>

enum { POINTS = 100000, EDGES = 300000 };

struct point {
  double x, y, z;
};

static struct point points[POINTS];

static unsigned seed = 21;

static unsigned number(void) {
  seed = seed * 1664525 + 1013904223;
  return seed >> 8;
}

int main(void) {
  for (int i = 0; i < POINTS; i++) {
    points[i].x = number() % 1000;
    points[i].y = number() % 1000;
    points[i].z = number() % 1000;
  }
  double sum = 0;
  for (int i = 0; i < EDGES; i++) {
    unsigned from = number() % POINTS, to = number() % POINTS;
    double dx = points[from].x - points[to].x, dy = points[from].y - points[to].y,
           dz = points[from].z - points[to].z; // <-- cured
    sum += dx * dx + dy * dy + dz * dz;
  }
  printf("%.0f\n", sum);
  return 0;
}
