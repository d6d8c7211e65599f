// Computed jumps, switches, variable arguments, variable-length arrays, by-value structures, atomics, wide numbers.
// RUN: env MEMLODE_MODE=both %memlode-c -O0 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s
// RUN: env MEMLODE_MODE=both %memlode-c -O1 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s
// RUN: env MEMLODE_MODE=both %memlode-c -O3 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct wide {
  long double real;
  __int128 whole;
  char text[40];
};

static int interpret(const unsigned char *code) {
  static void *const go[] = {&&push, &&add, &&again, &&stop};
  int stack[16] = {0}, top = 0, left = 300;
#define NEXT goto *go[*code++]
  const unsigned char *const start = code;
  NEXT;
push:
  stack[top++ & 15] = *code++;
  NEXT;
add:
  top--;
  stack[(top - 1) & 15] += stack[top & 15];
  NEXT;
again:
  if (--left > 0)
    code = start;
  NEXT;
stop:
  return stack[0] + stack[1] + left;
}

static long sum(int n, ...) {
  va_list list, copy;
  va_start(list, n);
  va_copy(copy, list);
  long s = 0;
  for (int i = 0; i < n; i++)
    s += va_arg(list, long);
  for (int i = 0; i < n; i++)
    s += (long)va_arg(copy, long);
  va_end(list);
  va_end(copy);
  return s;
}

__attribute__((noinline)) static double by_value(struct wide w, int n) {
  int vla[n];
  for (int i = 0; i < n; i++)
    vla[i] = w.text[i % 40];
  w.real += vla[n - 1];
  return (double)(w.real + w.whole);
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

int main(void) {
  const unsigned char code[] = {0, 3, 0, 4, 1, 2, 0, 9, 3};
  struct wide w = {1.5L, 7, "text"};
  _Atomic long counter = 0;
  long expected = 10;
  atomic_fetch_add(&counter, 10);
  atomic_compare_exchange_strong(&counter, &expected, 11);
  int numbers[100];
  for (int i = 0; i < 100; i++)
    numbers[i] = (i * 37) % 101;
  qsort(numbers, 100, sizeof *numbers, compare);
  double d = by_value(w, 2);
  printf("%d %ld %g %ld %d %d\n", interpret(code), sum(3, 1L, 2L, 3L), d, counter, numbers[0], numbers[99]);
  return 0;
}

// CHECK: {{[0-9]+}} 12 109.5 11 0 100
// CHECK: {{[1-9][0-9]*}} accesses agree
