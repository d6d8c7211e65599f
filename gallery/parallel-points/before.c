// Edges of a mesh, whose ends are looked up. The disease: a point's coordinates are in three arrays, and each
// lookup fetches three lines.
#include <stdio.h>

enum { POINTS = 100000, EDGES = 300000 };

static double x[POINTS], y[POINTS], z[POINTS];

static unsigned seed = 21;

static unsigned number(void) {
  seed = seed * 1664525 + 1013904223;
  return seed >> 8;
}

int main(void) {
  for (int i = 0; i < POINTS; i++) {
    x[i] = number() % 1000;
    y[i] = number() % 1000;
    z[i] = number() % 1000;
  }
  double sum = 0;
  for (int i = 0; i < EDGES; i++) {
    unsigned from = number() % POINTS, to = number() % POINTS;
    double dx = x[from] - x[to], dy = y[from] - y[to], dz = z[from] - z[to]; // <-- hot
    sum += dx * dx + dy * dy + dz * dz;
  }
  printf("%.0f\n", sum);
  return 0;
}
