// Masked loads and stores, gathers and plain vectors, as the vectoriser makes them.
// REQUIRES: avx2
// RUN: env MEMLODE_MODE=both %memlode-c -O3 -mavx2 -mtune=skylake -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s --check-prefix=AGREE
// RUN: %memlode-c -O3 -mavx2 -mtune=skylake -fno-unroll-loops -S -emit-llvm %s -o - | %FileCheck %s --check-prefix=IR
// RUN: %memlode-c -O3 -mavx2 -mtune=skylake -fno-unroll-loops -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s

#include <stdio.h>

int Data[64], Out[64], Index[64], Flag[64];
int *volatile Anywhere = Data;

__attribute__((noinline)) static void sometimes(const int *restrict From) {
  for (int I = 0; I < 64; I++)
    if (Flag[I])
      Out[I] = From[I];
}

__attribute__((noinline)) static int gathered(void) {
  int Sum = 0;
  for (int I = 0; I < 64; I++)
    Sum += Data[Index[I]];
  return Sum;
}

int main(void) {
  for (int I = 0; I < 64; I++) {
    Data[I] = I;
    Flag[I] = I % 8 == 1 || I % 8 == 4;
    Index[I] = 63 - I;
  }
  sometimes(Anywhere);
  printf("%d %d\n", gathered(), Out[33]);
  return 0;
}

// AGREE: 2016 33
// AGREE: {{[1-9][0-9]*}} accesses agree

// IR-LABEL: define internal fastcc void @sometimes(
// IR: [[BITS:%.*]] = bitcast <8 x i1> {{%.*}} to i8
// IR: zext i8 [[BITS]] to i64
// IR-LABEL: define internal fastcc {{.*}}i32 @gathered(
// IR: freeze <8 x ptr>
// IR: store <8 x ptr>
// IR: store i64 {{255|%.*}}, ptr

// CHECK: enter sometimes
// CHECK: load 4 mask 12 of 8 sometimes
// CHECK: store 4 mask 12 of 8 sometimes
// CHECK: enter gathered
// CHECK: load 32 gathered
// CHECK-COUNT-8: load 4 gathered
