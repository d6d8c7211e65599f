// Sums of a matrix's columns, several at a time. The disease: rows are 4096 bytes, so a column's cells all
// fall into one set of the first cache, and none is there when the next column of the same lines is asked
// for.
#include <stdio.h>

enum { ROWS = 512, COLUMNS = 512, PASSES = 4 };

struct row {
  double cells[COLUMNS];
};

static struct row matrix[ROWS] __attribute__((aligned(4096)));

int main(void) {
  for (int r = 0; r < ROWS; r++)
    for (int c = 0; c < COLUMNS; c++)
      matrix[r].cells[c] = r ^ c;
  double most = 0;
  for (int pass = 0; pass < PASSES; pass++)
    for (int c = 0; c < COLUMNS; c++) {
      double sum = 0;
      for (int r = 0; r < ROWS; r++)
        sum += matrix[r].cells[c]; // <-- hot
      if (sum > most)
        most = sum;
    }
  printf("%.0f\n", most);
  return 0;
}
