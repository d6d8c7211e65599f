// Bodies that fall. The disease: a step moves heights alone, through structures of which it fetches every
// line.
#include <stdio.h>
#include <stdlib.h>

enum { BODIES = 700000, STEPS = 8 };

struct body {
  double x, y, z;
  double dx, dy, dz;
  double mass, charge;
};

int main(void) {
  struct body *bodies = malloc(BODIES * sizeof *bodies);
  if (!bodies)
    abort();
  for (int i = 0; i < BODIES; i++)
    bodies[i] = (struct body){i, i * 2.0, 100.0 + i % 7, 0, 0, -0.5, 1.0, 0};
  for (int step = 0; step < STEPS; step++)
    for (int i = 0; i < BODIES; i++)
      bodies[i].z += bodies[i].dz; // <-- hot
  double sum = 0;
  for (int i = 0; i < BODIES; i++)
    sum += bodies[i].x - bodies[i].y + bodies[i].z * bodies[i].mass + bodies[i].dx + bodies[i].dy +
           bodies[i].charge;
  printf("%.1f\n", sum);
  return 0;
}
