// The edit distance of two texts: two rows that stay in the first level. It hardly waits.
#include "truth.h"

enum { LENGTH = 2000 };

static APART uint32_t distance(const char *one, const char *other, uint32_t *above, uint32_t *row) {
  for (uint32_t i = 0; i <= LENGTH; i++)
    above[i] = i;
  for (uint32_t i = 1; i <= LENGTH; i++) {
    row[0] = i;
    for (uint32_t j = 1; j <= LENGTH; j++) {
      uint32_t changed = above[j - 1] + (one[i - 1] != other[j - 1]);
      uint32_t shorter = above[j] < row[j - 1] ? above[j] : row[j - 1];
      row[j] = changed <= shorter ? changed : shorter + 1;
    }
    uint32_t *kept = above;
    above = row;
    row = kept;
  }
  return above[LENGTH];
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 15;
  char *texts[2] = {kernel_allocate(LENGTH, 1), kernel_allocate(LENGTH, 1)};
  uint32_t *rows[2] = {kernel_allocate(LENGTH + 1, 4), kernel_allocate(LENGTH + 1, 4)};
  uint64_t sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    for (int i = 0; i < LENGTH; i++) {
      texts[0][i] = (char)('a' + kernel_random(&seed) % 4);
      texts[1][i] = (char)('a' + kernel_random(&seed) % 4);
    }
    sum += distance(texts[0], texts[1], rows[0], rows[1]);
  }
  printf("%llu\n", (unsigned long long)sum);
}
