// Atomic updates that change nothing are no updates in machine code on x86: of those whose result is used only the
// load is left, and of the others only what they order.
// REQUIRES: x86
// RUN: %memlode-c -O1 -c %s -o %t.o && %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t > %t.out
// RUN: %FileCheck %s --input-file=%t.out
// RUN: env MEMLODE_MODE=both MEMLODE_VALUES=1 %memlode-c -O1 -c %s -o %t.both.o && %link %t.both.o -o %t.both
// RUN: %t.both 2>&1 | %FileCheck %s --check-prefix=AGREE
// RUN: %memlode-c -O1 -S %s -o - | %FileCheck %s --check-prefix=CODE
#include <stdio.h>

static long Counter, Flag;

// CHECK: enter idle
// CHECK-NOT: {{update|store}} {{.*}}idle
// CHECK: load 8 idle
// CHECK-NOT: {{update|store}} {{.*}}idle
// CHECK: update 8 idle
// CHECK-NEXT: exit idle
// CODE-LABEL: idle:
// CODE-NOT: xadd
// CODE: ret
__attribute__((noinline)) static long idle(long *At, long *Other) {
  __atomic_fetch_add(At, 0, __ATOMIC_RELAXED);
  const long Found = __atomic_fetch_or(At, 0, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(Other, 3, __ATOMIC_RELAXED);
  return Found;
}

// AGREE: {{[1-9][0-9]*}} accesses agree
int main(void) {
  printf("%ld\n", idle(&Counter, &Flag));
  return 0;
}
