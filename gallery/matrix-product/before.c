// The textbook's product: the innermost loop walks down a column of the right matrix.
#include "matrix.h"

int main(void) {
  row *left = matrix(ROWS), *right = matrix(SIZE), *product = zeros(ROWS);
  for (size_t i = 0; i < ROWS; i++)
    for (size_t j = 0; j < SIZE; j++)
      for (size_t k = 0; k < SIZE; k++)
        product[i][j] += left[i][k] * right[k][j]; // <-- column
  show(product);
}
