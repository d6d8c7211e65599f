/* Cells cool down, a step each round, until they are settled. A list has those that are not. */
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 80000, ROUNDS = 24 };

struct cell {
  double heat;
};

static int cool(struct cell *cells, unsigned char *steps, int *moving, int count) {
  int kept = 0;
  for (int k = 0; k < count; k++) {
    int i = moving[k];
    cells[i].heat *= 0.9;
    if (--steps[i] > 0)
      moving[kept++] = i;
  }
  return kept;
}

int main(void) {
  struct cell *cells = malloc(CELLS * sizeof *cells);
  unsigned char *steps = malloc(CELLS);
  int *moving = malloc(CELLS * sizeof *moving);
  if (cells == NULL || steps == NULL || moving == NULL)
    return free(moving), free(steps), free(cells), 1;
  unsigned seed = 1;
  for (int i = 0; i < CELLS; i++) {
    seed = seed * 1103515245 + 12345;
    cells[i].heat = 300 + (seed >> 16) % 1000 / 3.0;
    steps[i] = 1 + (seed >> 16) % 5;
    moving[i] = i;
  }
  int count = CELLS;
  for (int round = 0; round < ROUNDS; round++)
    count = cool(cells, steps, moving, count);
  double sum = 0;
  for (int i = 0; i < CELLS; i++)
    sum += cells[i].heat;
  printf("%.6f\n", sum);
  free(moving);
  free(steps);
  free(cells);
  return 0;
}
