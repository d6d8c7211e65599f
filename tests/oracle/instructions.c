/* Functions that differ in what lies between their accesses: a chase, arithmetic, a search with branches, a
 * loop without accesses, calls. Each is counted by Callgrind and by its sites. */
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline))

struct item {
  long value;
  struct item *next;
  double weight;
};

static long table[4096];

APART long chase(const struct item *item) {
  long sum = 0;
  for (; item; item = item->next)
    sum += item->value * 3 + 1;
  return sum;
}

APART long scatter(long count) {
  long sum = 0;
  unsigned long state = 88172645463325252;
  for (long i = 0; i < count; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    sum += table[state & 4095];
    table[(state >> 12) & 4095] = sum;
  }
  return sum;
}

APART long search(long count) {
  long found = 0;
  for (long i = 0; i < count; i++) {
    long low = 0, high = 4096, key = i * 7 % 4096;
    while (low < high) {
      const long middle = (low + high) / 2;
      if (table[middle] < key)
        low = middle + 1;
      else
        high = middle;
    }
    found += low;
  }
  return found;
}

/* A hundred steps of arithmetic for each access. */
APART double settle(double *values, long count) {
  double sum = 0;
  for (long i = 0; i < count; i++) {
    double x = values[i];
    for (int step = 0; step < 100; step++)
      x = x * x * 0.5 + 0.25;
    values[i] = x;
    sum += x;
  }
  return sum;
}

APART long one(const long *value, long other) { return *value > other ? *value : other; }

APART long calls(long count) {
  long most = 0;
  for (long i = 0; i < count; i++)
    most = one(&table[i & 4095], most) + (table[(i * 5) & 4095] & 1);
  return most;
}

int main(void) {
  struct item *first = NULL;
  for (long i = 0; i < 50000; i++) {
    struct item *item = malloc(sizeof *item);
    *item = (struct item){i, first, (double)i};
    first = item;
  }
  static double values[2000];
  long sum = chase(first) + scatter(200000);
  for (long i = 0; i < 4096; i++)
    table[i] = i;
  sum += search(20000) + calls(100000);
  printf("%ld %g\n", sum, settle(values, 2000));
  return 0;
}
