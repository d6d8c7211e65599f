// The beginning of a list of arguments writes it, and a copy of one reads and writes all of it.
// REQUIRES: x86
// RUN: %memlode-c -O1 -Rpass-missed=memlode -c %s -o %t.o 2>&1 | %FileCheck %s --check-prefix=REMARK --allow-empty
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// REMARK-NOT: is not recorded
#include <stdarg.h>
#include <stdio.h>

static va_list Kept;

// CHECK: enter sum
// CHECK: store 24 sum:[[#@LINE+5]]
// CHECK: load 24 sum:[[#@LINE+5]]
// CHECK: store 24 sum:[[#@LINE+4]]
__attribute__((noinline)) static long sum(int Count, ...) {
  va_list List;
  va_start(List, Count);
  va_copy(Kept, List);
  long Sum = 0;
  for (int I = 0; I < Count; ++I)
    Sum += va_arg(List, long) + va_arg(Kept, long);
  va_end(Kept);
  va_end(List);
  return Sum;
}

int main(void) {
  printf("%ld\n", sum(3, 1L, 2L, 3L));
  return 0;
}
