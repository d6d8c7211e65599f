// Types that no processor has registers for, and those that only few have, are loaded and stored like any other.
// REQUIRES: x86
// RUN: %memlode-c -O0 -c %s -o %t.o && %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// RUN: env MEMLODE_MODE=both MEMLODE_VALUES=1 %memlode-c -O2 -c %s -o %t.both.o
// RUN: %link %t.both.o -o %t.both && %t.both 2>&1 | %FileCheck %s --check-prefix=AGREE
// RUN: env MEMLODE_FIDELITY=source %memlode-c -O2 -c %s -o %t.source.o
// RUN: %link %t.source.o -o %t.source && env MEMLODE_TEST_PRINT=1 %t.source > %t.source.txt
#include <stdio.h>

typedef _Bool bits8 __attribute__((ext_vector_type(8)));
typedef _Bool bits4 __attribute__((ext_vector_type(4)));
typedef _Bool bits32 __attribute__((ext_vector_type(32)));
typedef float float3 __attribute__((ext_vector_type(3)));
typedef char char7 __attribute__((ext_vector_type(7)));
typedef unsigned char uchar4 __attribute__((ext_vector_type(4)));

bits8 Bits;
bits4 Few;
bits32 Many;
float3 Three;
char7 Seven;
uchar4 Four;
unsigned _BitInt(7) Tiny;
_BitInt(24) Small;
_BitInt(37) Middle;
_BitInt(129) Large;
long double Extended;
__bf16 Brain, Other;
_Float16 Half;
__int128 Wide;
_Complex double Pair;
volatile int At = 3;

__attribute__((noinline)) static int bits(void) {
  Bits[At] = 1;
  Few[At - 2] = 1;
  Many[At + 20] = 1;
  // CHECK: store 1 bits
  Bits = Bits | (bits8){1, 0, 0, 0, 0, 0, 0, 1};
  // CHECK: store 1 bits
  Few = !Few;
  return Bits[3] + Few[0] + Many[23];
}

__attribute__((noinline)) static int numbers(void) {
  Three[At - 1] += 2;
  // CHECK: store {{12|16}} numbers
  Three = Three * 3;
  Seven[At + 3] = 7;
  Four = Four + (uchar4)(1);
  Tiny = (unsigned _BitInt(7))(Tiny + 5);
  Small -= 9;
  Middle = Middle * 3 + 1;
  Large = (Large << 100) + 11;
  // CHECK: store {{10|16}} numbers
  Extended += 1.5L;
  // CHECK: store 2 numbers
  Brain = Other;
  Half = (_Float16)((float)Half + 3);
  Wide = (Wide << 70) + 1;
  Pair *= 2;
  return (int)Three.z + Seven[6] + Four.x + (int)Tiny + (int)Small + (int)Middle + (int)Large + (int)Extended +
         (int)(float)Half + (int)Wide;
}

// AGREE: 3 {{.*}}
// AGREE: {{[1-9][0-9]*}} accesses agree
int main(void) {
  const int one = bits();
  printf("%d %d\n", one, numbers());
  return 0;
}
