// Matrix multiplication, as written first and in tiles. Argument: rounds.
#include "kernel.h"

#include <string.h>

enum { N = 384, TILE = 32 };

static double a[N][N], b[N][N], c[N][N];

static void multiply(void) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      double sum = 0;
      for (int k = 0; k < N; k++)
        sum += a[i][k] * b[k][j];
      c[i][j] += sum;
    }
}

static void multiply_tiled(void) {
  for (int ii = 0; ii < N; ii += TILE)
    for (int kk = 0; kk < N; kk += TILE)
      for (int jj = 0; jj < N; jj += TILE)
        for (int i = ii; i < ii + TILE; i++)
          for (int k = kk; k < kk + TILE; k++)
            for (int j = jj; j < jj + TILE; j++)
              c[i][j] += a[i][k] * b[k][j];
}

int main(int argc, char **argv) {
  long rounds = kernel_rounds(argc, argv);
  uint64_t seed = 3;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      a[i][j] = kernel_random(&seed) % 10;
      b[i][j] = kernel_random(&seed) % 10;
    }
  double trace = 0;
  for (long round = 0; round < rounds; round++) {
    memset(c, 0, sizeof c);
    multiply();
    multiply_tiled();
    trace += c[round % N][(round * 7) % N];
  }
  printf("%.0f\n", trace);
  return 0;
}
