// What accesses load and store, as the program had it in its registers.
// RUN: env MEMLODE_VALUES=1 %memlode-c -O1 -c %s -o %t.o && %link %t.o -o %t
// RUN: env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
//
// Of one function only, for which the program foretells what many accesses will move.
// RUN: echo "include kind=values function=moves" > %t.rules
// RUN: env MEMLODE_FILTER=%t.rules %memlode-c -O2 -c %s -o %t.o && %link %t.o -o %t
// RUN: env MEMLODE_TEST_PRINT=1 %t > %t.out
// RUN: sed -n 's/^expected //p' %t.out > %t.expected
// RUN: grep '^value' %t.out | diff %t.expected -
//
// Calls for the same accesses agree with the stream, values in it or not; so it is while recording comes and goes.
// RUN: env MEMLODE_VALUES=1 MEMLODE_MODE=both %memlode-c -O2 -c %s -o %t.both.o && %link %t.both.o -o %t.both
// RUN: %t.both > /dev/null
// RUN: env MEMLODE_TEST_TOGGLE=1 %t.both > /dev/null

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static volatile unsigned char Byte;
static volatile unsigned short Short;
static volatile unsigned Word = 5;
static volatile unsigned long Long;
static volatile float Single;
static volatile double Double;
static volatile long double Extended;
static unsigned *volatile Pointer;
static atomic_uint Counter = 40;
static int Least = -1;

__attribute__((noinline)) static void kinds(void) {
  Byte = 200;
  // CHECK: store 1 kinds:[[#@LINE-1]]
  // CHECK-NEXT: value c8
  Word += 1;
  // CHECK-NEXT: load 4 kinds:[[#@LINE-1]]
  // CHECK-NEXT: value 5
  // CHECK-NEXT: store 4 kinds:[[#@LINE-3]]
  // CHECK-NEXT: value 6
  Double = 0.5;
  // CHECK-NEXT: store 8 kinds:[[#@LINE-1]]
  // CHECK-NEXT: value float 3fe0000000000000
  Extended = 1;
  // CHECK-NEXT: store 10 kinds:[[#@LINE-1]]
  // CHECK-NEXT: value float 8000000000000000 3fff
  Pointer = 0;
  // CHECK-NEXT: store 8 kinds:[[#@LINE-1]]
  // CHECK-NEXT: value 0
  atomic_fetch_add(&Counter, 2);
  // CHECK-NEXT: sync 1
  // CHECK-NEXT: update 4 kinds:[[#@LINE-2]]
  // CHECK-NEXT: value 28 2a
  unsigned Seen = 42;
  atomic_compare_exchange_strong(&Counter, &Seen, 7);
  // CHECK: update 4 kinds:[[#@LINE-1]]
  // CHECK-NEXT: value 2a 7
  atomic_compare_exchange_strong(&Counter, &Seen, 9);
  // CHECK: update 4 kinds:[[#@LINE-1]]
  // CHECK-NEXT: value 7 7
  __atomic_fetch_min(&Least, -3, __ATOMIC_RELAXED);
  // CHECK: update 4 kinds:[[#@LINE-1]]
  // CHECK-NEXT: value ffffffff fffffffd
}
// CHECK: exit kinds

static unsigned long next(unsigned long *State) {
  *State ^= *State << 13;
  *State ^= *State >> 7;
  return *State ^= *State << 17;
}

__attribute__((noinline)) static unsigned long moves(unsigned long State) {
  unsigned long Sum = 0;
  for (int I = 0; I < 500; ++I) {
    const unsigned long X = next(&State);
    switch (X % 6) {
    case 0:
      Byte = X >> 8;
      Sum += Byte;
      break;
    case 1:
      Short = X >> 8;
      Sum += Short;
      break;
    case 2:
      Word = X >> 8;
      Sum += Word;
      break;
    case 3:
      Long = X;
      Sum += Long;
      break;
    case 4:
      Single = (float)(X >> 40);
      Sum += (unsigned long)Single;
      break;
    case 5:
      Double = (double)(X >> 20);
      Sum += (unsigned long)Double;
      break;
    }
  }
  return Sum;
}

static void foretell(unsigned long State) {
  for (int I = 0; I < 500; ++I) {
    const unsigned long X = next(&State);
    static const unsigned long Masks[] = {0xff, 0xffff, 0xffffffff};
    unsigned long Bits = X % 6 < 3 ? X >> 8 & Masks[X % 6] : X;
    if (X % 6 == 4) {
      const float Value = (float)(X >> 40);
      Bits = 0;
      memcpy(&Bits, &Value, sizeof Value);
    } else if (X % 6 == 5) {
      const double Value = (double)(X >> 20);
      memcpy(&Bits, &Value, sizeof Value);
    }
    for (int Twice = 0; Twice < 2; ++Twice)
      printf("expected value%s %lx\n", X % 6 > 3 ? " float" : "", Bits);
  }
}

int main(void) {
  kinds();
  foretell(88172645463325252UL);
  printf("sum %lu\n", moves(88172645463325252UL));
  return 0;
}
