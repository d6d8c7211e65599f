// Records of two lines, each a block of its own, of which a lookup reads every other member: half of them in
// each line.
#include <stdio.h>
#include <stdlib.h>

enum { RECORDS = 1 << 14, LOOKUPS = 100000 };
struct record {
  long a0, b0, a1, b1, a2, b2, a3, b3, a4, b4, a5, b5, a6, b6, a7, b7;
};
static struct record *records[RECORDS];

int main(void) {
  for (int i = 0; i < RECORDS; i++) {
    records[i] = aligned_alloc(64, sizeof(struct record));
    if (!records[i])
      return 1;
    *records[i] = (struct record){i, 1, i, 2, i, 3, i, 4, i, 5, i, 6, i, 7, i, 8};
  }
  unsigned seed = 5;
  long sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    seed = seed * 1664525 + 1013904223;
    const struct record *one = records[(seed >> 8) % RECORDS];
    sum += one->a0 + one->a1 + one->a2 + one->a3 + one->a4 + one->a5 + one->a6 + one->a7;
  }
  for (int i = 0; i < LOOKUPS / 4; i++) {
    seed = seed * 1664525 + 1013904223;
    const struct record *one = records[(seed >> 8) % RECORDS];
    sum += one->b0 + one->b1 + one->b2 + one->b3 + one->b4 + one->b5 + one->b6 + one->b7;
  }
  printf("%ld\n", sum);
  return 0;
}
