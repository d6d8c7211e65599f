// Sweeps over vectors from front to back. To put two of the members together looks good: both are used in
// each step. So are the others, and all lines are fetched ahead.
#include <stdio.h>
#include <stdlib.h>

enum { VECTORS = 60000, SWEEPS = 6 };
struct vector {
  double x, y;
  double dx, dy;
};

int main(void) {
  struct vector *vectors = aligned_alloc(64, VECTORS * sizeof *vectors);
  if (!vectors)
    abort();
  for (int i = 0; i < VECTORS; i++)
    vectors[i] = (struct vector){i, -i, 1, 2};
  for (int sweep = 0; sweep < SWEEPS; sweep++)
    for (int i = 0; i < VECTORS; i++) {
      vectors[i].x += 0.5 * vectors[i].dx;
      vectors[i].y += 0.5 * vectors[i].dy;
    }
  printf("%.1f\n", vectors[17].x + vectors[19].y);
  free(vectors);
  return 0;
}
