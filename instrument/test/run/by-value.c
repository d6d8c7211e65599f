// A structure that is passed by value is read where it lies and written where the callee finds it.
// REQUIRES: x86
// RUN: %memlode-c -O2 -I%S/../Inputs -c %s -o %t.o -Rpass-missed=memlode 2>&1 | %FileCheck %s --allow-empty 
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=a %t > %t.txt && %python %S/../Inputs/own_account.py %t.txt
// RUN: env MEMLODE_VERSIONS=0 %memlode-c -O0 -I%S/../Inputs -c %s -o %t.0.o
// RUN: %link %t.0.o -o %t.0 && env MEMLODE_TEST_PRINT=1 %t.0 | %FileCheck %s --check-prefix=PLAIN
// RUN: env MEMLODE_MODE=both %memlode-c -O1 -I%S/../Inputs -c %s -o %t.both.o
// RUN: %link %t.both.o -o %t.both && %t.both 2>&1 | %FileCheck %s --check-prefix=AGREE
// CHECK-NOT: argument is recorded where it is read
#include "own_account.h"

struct big {
  long v[5];
};
struct big Here = {{1, 2, 3, 4, 5}};

// PLAIN: enter by_hand_take
// PLAIN-NEXT: store 40 by_hand_take
__attribute__((noinline)) long by_hand_take(int n, struct big b, struct big c) {
  own("store", 40, &b);
  own("store", 40, &c);
  own("load", 8, &b.v[n]);
  own("load", 8, &c.v[n + 1]);
  return b.v[n] * c.v[n + 1];
}

__attribute__((noinline)) static long by_hand_call(const struct big *from) {
  own("load", 40, from);
  own("load", 40, from + 1);
  return by_hand_take(2, from[0], from[1]);
}

// AGREE: {{[1-9][0-9]*}} accesses agree
int main(void) {
  struct big more[2] = {Here, Here};
  own("nothing", 0, 0);
  note_count = 0;
  const long got = by_hand_call(more);
  say_notes();
  return got != 12;
}
