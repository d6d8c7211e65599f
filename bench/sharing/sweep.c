// Each thread adds to its own column of a table of 256 lines, again and again.
#include "pair.h"

enum { ROWS = 256 };
static long *volatile table;

static void work(long self, long turns) {
  long *cells = table;
  for (long turn = 0; turn < turns; turn++)
    for (long row = 0; row < ROWS; row++)
#ifdef PADDED
      cells[(self * ROWS + row) * 8] += turn ^ row;
#else
      cells[row * 8 + self] += turn ^ row;
#endif
}

int main(int argc, char **argv) {
  table = aligned_alloc(64, 2 * ROWS * 64);
  for (long i = 0; i < 2 * ROWS * 8; i++)
    table[i] = 0;
  pair(argc, argv);
  printf("%ld\n", table[7 * 8] + table[9 * 8 + 1]);
  return 0;
}
