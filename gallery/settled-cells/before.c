/* Cells cool down, a step each round, until they are settled. Every round goes over all of them, and writes
   back what most of them had. */
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 80000, ROUNDS = 24, SOLID = 3 };

struct cell {
  int material; /* SOLID, whatever happens */
  int steps;    /* still to go */
  double heat;
};

static void cool(struct cell *cells) {
  for (int i = 0; i < CELLS; i++) {
    struct cell *cell = &cells[i];
    if (cell->material != SOLID) // <-- always the same
      continue;
    int steps = cell->steps;                            // <-- steps read
    cell->heat = steps ? cell->heat * 0.9 : cell->heat; // <-- heat written
    cell->steps = steps ? steps - 1 : 0;                // <-- steps written
  }
}

int main(void) {
  struct cell *cells = malloc(CELLS * sizeof *cells);
  if (cells == NULL)
    return 1;
  unsigned seed = 1;
  for (int i = 0; i < CELLS; i++) {
    seed = seed * 1103515245 + 12345;
    cells[i] = (struct cell){SOLID, 1 + (seed >> 16) % 5, 300 + (seed >> 16) % 1000 / 3.0};
  }
  for (int round = 0; round < ROUNDS; round++)
    cool(cells);
  double sum = 0;
  for (int i = 0; i < CELLS; i++)
    sum += cells[i].heat; // <-- heat read
  printf("%.6f\n", sum);
  free(cells);
  return 0;
}
