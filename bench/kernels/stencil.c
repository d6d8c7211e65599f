// A 5-point stencil on a grid and a 5-tap filter on a row: affine loops that vectorise.
// Argument: rounds.
#include "kernel.h"

enum { SIDE = 1024, ROW = 1 << 20 };

static void diffuse(double *restrict to, const double *restrict from) {
  for (int y = 1; y < SIDE - 1; y++)
    for (int x = 1; x < SIDE - 1; x++) {
      const double *at = &from[y * SIDE + x];
      to[y * SIDE + x] = 0.2 * (at[0] + at[-1] + at[1] + at[-SIDE] + at[SIDE]);
    }
}

static void smooth(float *restrict to, const float *restrict from) {
  for (int i = 2; i < ROW - 2; i++)
    to[i] =
        0.1f * from[i - 2] + 0.2f * from[i - 1] + 0.4f * from[i] + 0.2f * from[i + 1] + 0.1f * from[i + 2];
}

int main(int argc, char **argv) {
  long rounds = kernel_rounds(argc, argv);
  double *a = kernel_allocate(SIDE * SIDE, sizeof *a), *b = kernel_allocate(SIDE * SIDE, sizeof *b);
  float *p = kernel_allocate(ROW, sizeof *p), *q = kernel_allocate(ROW, sizeof *q);
  uint64_t seed = 2;
  for (int i = 0; i < SIDE * SIDE; i++)
    a[i] = b[i] = kernel_random(&seed) % 100;
  for (int i = 0; i < ROW; i++)
    p[i] = q[i] = (float)(kernel_random(&seed) % 100);
  for (long round = 0; round < rounds; round++) {
    diffuse(b, a);
    diffuse(a, b);
    smooth(q, p);
    smooth(p, q);
  }
  printf("%.6f %.6f\n", a[SIDE * SIDE / 2 + 7], (double)p[ROW / 2]);
  return 0;
}
