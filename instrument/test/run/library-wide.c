// Functions of libc that look at or fill characters of four bytes, and copies that the compiler knows nothing
// of.
// RUN: %memlode-c -O1 -fno-builtin -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// RUN: env MEMLODE_MODE=both %memlode-c -O2 -c %s -o %t.both.o
// RUN: %link %t.both.o -o %t.both && %t.both

#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

wchar_t to[100], abc[] = L"abcabc", abd[] = L"abdx";
char bytes[100], swapped[100];

// CHECK: enter searches
__attribute__((noinline)) static long searches(void) {
  long n = 0;
  // CHECK: load 28 searches:[[#@LINE+1]]
  n += (long)wcslen(abc);
  // CHECK: load 12 searches:[[#@LINE+1]]
  n += (long)wcsnlen(abc, 3);
  // CHECK: load 12 searches:[[#@LINE+1]]
  n += wcschr(abc, L'c') - abc;
  // CHECK: load 28 searches:[[#@LINE+1]]
  n += wcschr(abc, L'z') == NULL;
  // CHECK: load 8 searches:[[#@LINE+1]]
  n += wmemchr(abc, L'b', 6) - abc;
  // CHECK: load 12 searches:[[#@LINE+2]]
  // CHECK-NEXT: load 12 searches:[[#@LINE+1]]
  n += (long)wcsspn(abc, L"ba");
  // CHECK: load 12 searches:[[#@LINE+2]]
  // CHECK-NEXT: load 12 searches:[[#@LINE+1]]
  n += wcscmp(abc, abd);
  // CHECK: load 8 searches:[[#@LINE+2]]
  // CHECK-NEXT: load 8 searches:[[#@LINE+1]]
  n += wmemcmp(abc, abd, 2);
  return n;
}

// CHECK: enter copies
__attribute__((noinline)) static void copies(ssize_t odd) {
  // CHECK: load 20 copies:[[#@LINE+2]]
  // CHECK-NEXT: store 20 copies:[[#@LINE+1]]
  wcscpy(to, abd);
  // CHECK: load 20 copies:[[#@LINE+3]]
  // CHECK-NEXT: load 28 copies:[[#@LINE+2]]
  // CHECK-NEXT: store 28 copies:[[#@LINE+1]]
  wcscat(to, abc);
  // CHECK: load 16 copies:[[#@LINE+2]]
  // CHECK-NEXT: store 16 copies:[[#@LINE+1]]
  wmemcpy(to, abc, 4);
  // CHECK: store 40 copies:[[#@LINE+1]]
  wmemset(to, L'x', 10);
  // CHECK: store 50 copies:[[#@LINE+1]]
  explicit_bzero(bytes, 50);
  // CHECK: load 30 copies:[[#@LINE+2]]
  // CHECK-NEXT: store 30 copies:[[#@LINE+1]]
  memfrob(bytes, 30);
  // CHECK: load 6 copies:[[#@LINE+2]]
  // CHECK-NEXT: store 6 copies:[[#@LINE+1]]
  swab(bytes, swapped, odd);
  // CHECK: load 0 copies:[[#@LINE+3]]
  // CHECK-NEXT: store 0 copies:[[#@LINE+2]]
  // CHECK: exit copies
  swab(bytes, swapped, -odd);
}

// CHECK: enter numbers
__attribute__((noinline)) static double numbers(double x) {
  int exponent;
  double whole;
  // CHECK: store 4 numbers:[[#@LINE+1]]
  x += frexp(x, &exponent);
  // CHECK: store 8 numbers:[[#@LINE+1]]
  return modf(x, &whole) + exponent + whole;
}

int main(void) {
  const long n = searches();
  copies(7);
  return n + numbers(1.5) == 0;
}
