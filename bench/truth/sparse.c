// A sparse matrix times a vector, and what a solver does with vectors besides.
#include "truth.h"

enum { ROWS = 1 << 18, EACH = 8 };

static APART void multiply(const double *values, const uint32_t *columns, const double *x, double *y) {
  for (size_t row = 0; row < ROWS; row++) {
    double sum = 0;
    for (size_t at = row * EACH; at < (row + 1) * EACH; at++)
      sum += values[at] * x[columns[at]];
    y[row] = sum;
  }
}

static APART double dot(const double *x, const double *y) {
  double sum = 0;
  for (size_t i = 0; i < ROWS; i++)
    sum += x[i] * y[i];
  return sum;
}

static APART void add(double *x, const double *y, double factor) {
  for (size_t i = 0; i < ROWS; i++)
    x[i] = factor * x[i] + y[i];
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 12;
  // Columns near the diagonal, or anywhere.
  uint32_t reach = truth_is(argv, "banded") ? 512 : ROWS;
  double *values = kernel_allocate((size_t)ROWS * EACH, sizeof *values);
  uint32_t *columns = kernel_allocate((size_t)ROWS * EACH, sizeof *columns);
  double *x = kernel_allocate(ROWS, sizeof *x);
  double *y = kernel_allocate(ROWS, sizeof *y);
  for (size_t i = 0; i < (size_t)ROWS * EACH; i++) {
    values[i] = 0.1;
    columns[i] = (uint32_t)(i / EACH + kernel_random(&seed) % reach) % ROWS;
  }
  for (size_t i = 0; i < ROWS; i++)
    x[i] = 1;
  double sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    multiply(values, columns, x, y);
    sum += dot(x, y);
    add(x, y, 0.5);
  }
  printf("%f\n", sum);
}
