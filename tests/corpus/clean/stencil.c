// Heat that spreads along a rod, from one array into another and back.
#include <stdio.h>

enum { CELLS = 100000, STEPS = 12 };
static double now[CELLS], next[CELLS];

static void step(const double *from, double *to) {
  for (int i = 1; i < CELLS - 1; i++)
    to[i] = from[i] + 0.25 * (from[i - 1] - 2 * from[i] + from[i + 1]);
}

int main(void) {
  now[CELLS / 2] = 1000;
  for (int i = 0; i < STEPS; i++) {
    step(now, next);
    step(next, now);
  }
  printf("%.3f\n", now[CELLS / 2]);
  return 0;
}
