// The same bodies. The cure: an array for each component, and a step fetches what it moves.
#include <stdio.h>
#include <stdlib.h>

enum { BODIES = 700000, STEPS = 8 };

struct bodies {
  double *x, *y, *z;
  double *dx, *dy, *dz;
  double *mass, *charge;
};

static double *component(void) {
  double *values = malloc(BODIES * sizeof *values);
  if (!values)
    abort();
  return values;
}

int main(void) {
  struct bodies all = {component(), component(), component(), component(),
                       component(), component(), component(), component()};
  for (int i = 0; i < BODIES; i++) {
    all.x[i] = i;
    all.y[i] = i * 2.0;
    all.z[i] = 100.0 + i % 7;
    all.dx[i] = all.dy[i] = 0;
    all.dz[i] = -0.5;
    all.mass[i] = 1.0;
    all.charge[i] = 0;
  }
  for (int step = 0; step < STEPS; step++)
    for (int i = 0; i < BODIES; i++)
      all.z[i] += all.dz[i]; // <-- cured
  double sum = 0;
  for (int i = 0; i < BODIES; i++)
    sum += all.x[i] - all.y[i] + all.z[i] * all.mass[i] + all.dx[i] + all.dy[i] + all.charge[i];
  printf("%.1f\n", sum);
  return 0;
}
