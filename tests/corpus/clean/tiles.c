// A product of matrices in tiles that fit the first level.
#include <stdio.h>

enum { SIZE = 96, TILE = 16 };
static double a[SIZE][SIZE], b[SIZE][SIZE], c[SIZE][SIZE];

int main(void) {
  for (int i = 0; i < SIZE; i++)
    for (int j = 0; j < SIZE; j++)
      a[i][j] = i + j, b[i][j] = i - j;
  for (int ii = 0; ii < SIZE; ii += TILE)
    for (int kk = 0; kk < SIZE; kk += TILE)
      for (int i = ii; i < ii + TILE; i++)
        for (int k = kk; k < kk + TILE; k++)
          for (int j = 0; j < SIZE; j++)
            c[i][j] += a[i][k] * b[k][j];
  printf("%.0f\n", c[7][11]);
  return 0;
}
