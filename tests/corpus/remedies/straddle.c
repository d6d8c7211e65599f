// Records of 48 bytes, each read whole and in no order: every other one lies in two lines.
#include <stdio.h>

enum { RECORDS = 1 << 16, LOOKUPS = 200000 };
struct record {
  long a, b, c, d, e, f;
};
static _Alignas(64) struct record records[RECORDS];

int main(void) {
  for (int i = 0; i < RECORDS; i++)
    records[i] = (struct record){i, i, i, i, i, i};
  unsigned seed = 7;
  long sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    seed = seed * 1664525 + 1013904223;
    const struct record *one = &records[(seed >> 8) % RECORDS];
    sum += one->a + one->b + one->c + one->d + one->e + one->f;
  }
  printf("%ld\n", sum);
  return 0;
}
