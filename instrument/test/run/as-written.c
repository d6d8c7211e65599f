// MEMLODE_FIDELITY=source: the accesses that the source names, also where the optimiser needs none; local
// variables that become registers are no memory. The program stays the same.
// RUN: env MEMLODE_FIDELITY=source %memlode-c -O2 -c %s -o %t.o && %link %t.o -o %t
// RUN: env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s --check-prefix=SOURCE
// RUN: %memlode-c -O2 -c %s -o %t.o && %link %t.o -o %t
// RUN: env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s --check-prefix=OPTIMISED
// What is stored inline is what a call in front of each access says, and it survives the optimiser.
// RUN: env MEMLODE_FIDELITY=source MEMLODE_MODE=both %memlode-c -O3 -c %s -o %t.o && %link %t.o -o %t
// RUN: %t 2>&1 | %FileCheck %s --check-prefix=AGREE
// AGREE: 42
// AGREE: recorder: 19 accesses agree
// A plug-in that comes too late says so.
// RUN: %clang -O2 -flto -S -emit-llvm %s -o %t.ll
// RUN: not env MEMLODE_FIDELITY=source %opt -passes='lto<O2>' %t.ll -disable-output 2>&1 | %FileCheck %s --check-prefix=LATE
// LATE: error: memlode: MEMLODE_FIDELITY is 'source', but {{.*}} has been optimised already

#include <stdio.h>

struct pair {
  long a, b;
};

// The second load of a, and the load of b behind its store, are redundant.
__attribute__((noinline)) static long redundant(struct pair *p) {
  long first = p->a;
  p->b = first;
  return p->a + p->b;
}

// SOURCE: enter redundant
// SOURCE-NEXT: load 8 redundant:25
// SOURCE-NEXT: store 8 redundant:26
// SOURCE-NEXT: load 8 redundant:27
// SOURCE-NEXT: load 8 redundant:27
// SOURCE-NEXT: exit redundant

// OPTIMISED: enter redundant
// OPTIMISED-NEXT: load 8 redundant:25
// OPTIMISED-NEXT: store 8 redundant:26
// OPTIMISED-NEXT: exit redundant

static inline __attribute__((always_inline)) long demanded(const long *p) { return *p; }

// Says that it depends on nothing but its argument: two calls could be one.
__attribute__((const, noinline)) static long constant(long x) {
  static const long Table[4] = {1, 2, 3, 5};
  return Table[x & 3];
}

// SOURCE: enter calls
// SOURCE-NOT: enter demanded
// SOURCE: load 8 demanded:{{.*}}
// SOURCE: enter constant
// SOURCE: load 8 constant
// SOURCE: enter constant
// SOURCE: load 8 constant
// SOURCE: exit calls
__attribute__((noinline)) static long calls(long *p) { return demanded(p) + constant(*p) + constant(*p); }

int main(void) {
  struct pair p = {9, 0};
  long q = 6;
  for (volatile int i = 0; i < 1; i++)
    q += redundant(&p);
  printf("%ld\n", calls(&q) + 16);
  return 0;
}
