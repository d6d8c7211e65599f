// The same without a second matrix: tiles as wide as a line, so that all of a line is used while it is there.
#include "matrix.h"

enum { TILE = 8 };

int main(void) {
  row *left = matrix(ROWS), *right = matrix(SIZE), *product = zeros(ROWS);
  for (size_t i = 0; i < ROWS; i += TILE)
    for (size_t j = 0; j < SIZE; j += TILE)
      for (size_t k = 0; k < SIZE; k += TILE)
        for (size_t i2 = i; i2 < i + TILE; i2++)
          for (size_t k2 = k; k2 < k + TILE; k2++)
            for (size_t j2 = j; j2 < j + TILE; j2++)
              product[i2][j2] += left[i2][k2] * right[k2][j2]; // <-- tile
  show(product);
}
