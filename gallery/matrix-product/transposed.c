// The same with the right matrix transposed first, so that the innermost loop walks along rows.
#include "matrix.h"

int main(void) {
  row *left = matrix(ROWS), *right = matrix(SIZE), *product = zeros(ROWS), *turned = zeros(SIZE);
  for (size_t i = 0; i < SIZE; i++)
    for (size_t j = 0; j < SIZE; j++)
      turned[i][j] = right[j][i];
  for (size_t i = 0; i < ROWS; i++)
    for (size_t j = 0; j < SIZE; j++)
      for (size_t k = 0; k < SIZE; k++)
        product[i][j] += left[i][k] * turned[j][k]; // <-- row
  show(product);
}
