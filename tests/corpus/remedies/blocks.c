// Records that are walked member by member, and as a whole: an array for each member makes sixteen streams
// that fall into one set.
#include <stdio.h>

enum { RECORDS = 1 << 12, ROUNDS = 4 };
struct record {
  long m0, m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15;
};
static struct record records[RECORDS];

#define SUM_OF(member)                                                                                       \
  for (int i = 0; i < RECORDS; i++)                                                                          \
    sum += records[i].member;

static long by_member(void) {
  long sum = 0;
  SUM_OF(m0)
  SUM_OF(m1)
  SUM_OF(m2)
  SUM_OF(m3)
  SUM_OF(m4)
  SUM_OF(m5)
  SUM_OF(m6)
  SUM_OF(m7)
  SUM_OF(m8)
  SUM_OF(m9)
  SUM_OF(m10)
  SUM_OF(m11)
  SUM_OF(m12)
  SUM_OF(m13)
  SUM_OF(m14)
  SUM_OF(m15)
  return sum;
}

static long whole(void) {
  long sum = 0;
  for (int i = 0; i < RECORDS; i++) {
    const struct record *one = &records[i];
    sum += one->m0 + one->m1 + one->m2 + one->m3 + one->m4 + one->m5 + one->m6 + one->m7 + one->m8 + one->m9 +
           one->m10 + one->m11 + one->m12 + one->m13 + one->m14 + one->m15;
  }
  return sum;
}

int main(void) {
  for (int i = 0; i < RECORDS; i++)
    records[i] = (struct record){i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i};
  long sum = 0;
  for (int round = 0; round < ROUNDS; round++)
    sum += by_member() + whole();
  printf("%ld\n", sum);
  return 0;
}
