// Records of three lines of which a lookup reads every third member: some of them in each line.
#include <stdio.h>

enum { RECORDS = 1 << 14, LOOKUPS = 60000 };
struct record {
  _Alignas(64) long a0;
  long b0, c0, a1, b1, c1, a2, b2, c2, a3, b3, c3, a4, b4, c4, a5, b5, c5, a6, b6, c6, a7, b7, c7;
};
static struct record records[RECORDS];

int main(void) {
  for (long i = 0; i < RECORDS; i++)
    records[i] =
        (struct record){i, 1, 2, i, 3, 4, i, 5, 6, i, 7, 8, i, 9, 10, i, 11, 12, i, 13, 14, i, 15, 16};
  unsigned seed = 5;
  long sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    seed = seed * 1664525 + 1013904223;
    const struct record *one = &records[(seed >> 8) % RECORDS];
    sum += one->a0 + one->a1 + one->a2 + one->a3 + one->a4 + one->a5 + one->a6 + one->a7;
  }
  for (int i = 0; i < LOOKUPS / 8; i++) {
    seed = seed * 1664525 + 1013904223;
    const struct record *one = &records[(seed >> 8) % RECORDS];
    sum += one->b0 + one->b1 + one->b2 + one->b3 + one->b4 + one->b5 + one->b6 + one->b7;
    sum += one->c0 + one->c1 + one->c2 + one->c3 + one->c4 + one->c5 + one->c6 + one->c7;
  }
  printf("%ld\n", sum);
  return 0;
}
