// However arguments and results are passed, they arrive behind the choice between two sides, too.
// RUN: env MEMLODE_MODE=both MEMLODE_VERSIONS=1 %memlode-c -O2 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t | %FileCheck %s

#include <stdarg.h>
#include <stdio.h>

#define NOINLINE __attribute__((noinline))

typedef struct {
  long Values[9];
} Large;
typedef struct {
  double A;
  long B;
} Pair;

static volatile long Seen;

NOINLINE long many(long A, long B, long C, long D, long E, long F, long G, char H, short I, double J, float K,
                   double L, double M, double N, double O, double P, double Q, double R, double S) {
  Seen++;
  return A + 2 * B + 3 * C + 4 * D + 5 * E + 6 * F + 7 * G + 8 * H + 9 * I +
         (long)(J + 2 * K + 3 * L + 4 * M + 5 * N + 6 * O + 7 * P + 8 * Q + 9 * R + 10 * S);
}

NOINLINE long byValue(Large First, int Between, Large Second) {
  Seen++;
  First.Values[0] += Seen;
  long Sum = Between;
  for (int I = 0; I < 9; I++)
    Sum += (I + 1) * First.Values[I] - Second.Values[I];
  return Sum - Seen;
}

NOINLINE Large returned(long Base, Large From) {
  Seen++;
  for (int I = 0; I < 9; I++)
    From.Values[I] += Base;
  return From;
}

NOINLINE Pair pair(Pair P, long double Q, __int128 R) {
  Seen++;
  return (Pair){P.A + (double)Q, P.B + (long)(R >> 64)};
}

NOINLINE long variadic(int Count, ...) {
  va_list Arguments;
  va_start(Arguments, Count);
  long Sum = Seen - Seen;
  while (Count-- > 0)
    Sum += va_arg(Arguments, long);
  va_end(Arguments);
  return Sum;
}

int main(void) {
  Large L = {{1, 2, 3, 4, 5, 6, 7, 8, 9}};
  Large M = returned(100, L);
  Pair P = pair((Pair){1.5, 2}, 3.25L, (__int128)40 << 64);
  printf("%ld %ld %ld %ld\n", many(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
         byValue(L, 7, M), M.Values[8], variadic(3, 10L, 20L, 30L));
  printf("%.2f %ld %ld\n", P.A, P.B, L.Values[0]);
  return 0;
}

// CHECK: 670 -653 109 60
// CHECK-NEXT: 4.75 42 1
