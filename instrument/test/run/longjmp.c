// setjmp returns a second time: the cursor is taken back and the frames above are gone.
// RUN: env MEMLODE_MODE=both %memlode-c -O0 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>%t.err | %FileCheck %s && %FileCheck %s --check-prefix=AGREE --input-file=%t.err
// RUN: env MEMLODE_MODE=both %memlode-c -O3 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>%t.err | %FileCheck %s && %FileCheck %s --check-prefix=AGREE --input-file=%t.err
// RUN: %memlode-c -O2 -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s --check-prefix=STREAM

#include <setjmp.h>
#include <stdio.h>

static jmp_buf Back;
static volatile int Steps[16];

__attribute__((noinline)) static void down(int N) {
  Steps[N]++;
  if (N == 10)
    longjmp(Back, 7);
  down(N + 1);
  Steps[N]--;
}

int main(void) {
  int Sum = 0;
  for (volatile int I = 0; I < 20; I++) {
    int Why = setjmp(Back);
    if (Why == 0)
      down(0);
    else
      Sum += Why;
  }
  printf("%d %d\n", Sum, Steps[10]);
  return 0;
}

// CHECK: 140 20
// AGREE: recorder: {{[1-9][0-9]*}} accesses agree

// STREAM: enter main depth 1
// STREAM: resume main depth 1
// STREAM: enter down depth 2
// STREAM: enter down depth 12
// STREAM: resume main depth 1
// STREAM: enter down depth 2
