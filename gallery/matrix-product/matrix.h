// The matrices of the three programs: a few rows of the left one, as each row costs the same.
#pragma once
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 8, SIZE = 1024 };

typedef double row[SIZE];

static row *matrix(size_t rows) {
  row *made = aligned_alloc(64, rows * sizeof(row));
  if (!made)
    exit(1);
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < SIZE; j++)
      made[i][j] = (double)((i * 31 + j * 17) % 64);
  return made;
}

static row *zeros(size_t rows) {
  row *made = aligned_alloc(64, rows * sizeof(row));
  if (!made)
    exit(1);
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < SIZE; j++)
      made[i][j] = 0;
  return made;
}

static void show(const row *product) {
  double sum = 0;
  for (size_t i = 0; i < ROWS; i++)
    for (size_t j = 0; j < SIZE; j++)
      sum += product[i][j] * (double)(1 + (i + j) % 7);
  printf("%.0f\n", sum);
}
