// The same sums. The cure: a row is a line longer, and a column goes over all sets.
#include <stdio.h>

enum { ROWS = 512, COLUMNS = 512, PASSES = 4 };

struct row {
  double cells[COLUMNS];
  char pad[64];
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
        sum += matrix[r].cells[c]; // <-- cured
      if (sum > most)
        most = sum;
    }
  printf("%.0f\n", most);
  return 0;
}
