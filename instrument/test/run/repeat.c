// Loops that are told at once: up, down, with gaps, with several courses, of no and of one turn, and those that cannot be.
// RUN: env MEMLODE_MODE=both %memlode-c -O1 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s
// RUN: env MEMLODE_MODE=both %memlode-c -O2 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s
// RUN: env MEMLODE_MODE=both MEMLODE_VERSIONS=1 %memlode-c -O3 -march=x86-64-v3 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s

#include <stdatomic.h>
#include <stdio.h>

struct cell {
  long a, b, c;
};

static struct cell cells[200];
static double x[256], y[256];
static long sums[4];
static atomic_long shared;

static void up(unsigned char from, unsigned char to) {
  for (unsigned char i = from; i != to; i++) // may go round
    x[i] += 1.0;
}

static void down(int n) {
  for (int i = n - 1; i >= 0; i--)
    cells[i].b = cells[i].a + cells[i].c;
}

static void apart(long n, long every) {
  for (long i = 0; i < n; i += every)
    y[i] = x[n - 1 - i];
}

static long reduce(const struct cell *first, const struct cell *last) {
  long sum = 0;
  for (; first != last; first++) {
    sum += first->b;
    sums[1] ^= first->c;
  }
  return sum;
}

static long until(const struct cell *c, long what) {
  long steps = 0;
  while (c->a != what) {
    c++;
    steps++;
  }
  return steps;
}

static void together(int n) {
  for (int i = 0; i < n; i++)
    atomic_fetch_add_explicit(&shared, cells[i].a, memory_order_relaxed);
}

static void square(int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++)
      x[(16 * i + j) & 255] += y[(16 * j + i) & 255];
}

int main(void) {
  for (int i = 0; i < 200; i++)
    cells[i] = (struct cell){i, 2 * i, 3 * i};
  for (int n = 0; n < 4; n++)
    down(n);
  down(200);
  up(3, 3);
  up(250, 7);
  up(0, 255);
  apart(0, 1);
  apart(100, 1);
  apart(101, 7);
  sums[0] = reduce(cells, cells) + reduce(cells, cells + 1) + reduce(cells + 3, cells + 200);
  sums[2] = until(cells, 150);
  together(17);
  square(16);
  printf("%ld %ld %ld %ld %f\n", sums[0], sums[1], sums[2], (long)shared, x[17] + y[98]);
  // CHECK: {{[0-9]+}} {{[0-9]+}} 150 136
  return 0;
}
