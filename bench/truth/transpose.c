// A transposition: row by row, in tiles, or row by row with columns that do not share a set.
#include "truth.h"

enum { SIDE = 2048, TILE = 16, PADDING = 9 };

static APART void transpose(const double *from, double *to, size_t pitch) {
  for (size_t row = 0; row < SIDE; row++)
    for (size_t column = 0; column < SIDE; column++)
      to[column * pitch + row] = from[row * pitch + column];
}

static APART void transpose_tiled(const double *from, double *to, size_t pitch) {
  for (size_t rows = 0; rows < SIDE; rows += TILE)
    for (size_t columns = 0; columns < SIDE; columns += TILE)
      for (size_t row = rows; row < rows + TILE; row++)
        for (size_t column = columns; column < columns + TILE; column++)
          to[column * pitch + row] = from[row * pitch + column];
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  size_t pitch = truth_is(argv, "padded") ? SIDE + PADDING : SIDE;
  double *from = kernel_allocate(SIDE * pitch, sizeof *from);
  double *to = kernel_allocate(SIDE * pitch, sizeof *to);
  for (size_t i = 0; i < SIDE * pitch; i++)
    from[i] = (double)i;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    if (truth_is(argv, "tiled"))
      transpose_tiled(from, to, pitch);
    else
      transpose(from, to, pitch);
  }
  printf("%f\n", to[SIDE - 1]);
}
