// A call in a function that is to be flattened, whose callee only the optimiser finds out, is not inlined any more
// when that has an entry and an exit of its own: they would name the caller's frame.
// RUN: env MEMLODE_FIDELITY=source MEMLODE_MODE=both %memlode-c -O2 -c %s -o %t.o && %link %t.o -o %t
// RUN: %t 2>&1 | %FileCheck %s
// CHECK: 42
// CHECK: accesses agree

#include <stdio.h>

static long Value = 40;

static long next(long Add) {
  Value += Add;
  return Value;
}

static long (*const Table[])(long) = {next, next};

__attribute__((flatten, noinline)) static long flat(long Add) {
  Value += 1;
  return Table[0](Add);
}

int main(void) {
  printf("%ld\n", flat(1));
  return 0;
}
