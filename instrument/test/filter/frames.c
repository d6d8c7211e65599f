// Frames and allocations stay without a word about them, and go when a rule names their kind.
// RUN: split-file-22 %s %t
// RUN: env MEMLODE_FILTER=%t/accesses %memlode-c -O1 -c %t/a.c -o %t.o && %link %t.o -o %t.x
// RUN: env MEMLODE_TEST_PRINT=1 %t.x | %FileCheck %s --check-prefix=ACCESSES
// RUN: env MEMLODE_FILTER=%t/frames %memlode-c -O1 -c %t/a.c -o %t.o && %link %t.o -o %t.x
// RUN: env MEMLODE_TEST_PRINT=1 %t.x | %FileCheck %s --check-prefix=FRAMES
// RUN: env MEMLODE_FILTER=%t/all %memlode-c -O1 -S -emit-llvm %t/a.c -o - | %FileCheck %s --check-prefix=ALL

// ACCESSES: enter main
// ACCESSES: alloc some 800 main
// ACCESSES-NOT: enter leaf
// ACCESSES: enter leaves
// ACCESSES: exit leaves
// ACCESSES: free some main
// ACCESSES: exit main

// FRAMES: enter main
// FRAMES: alloc some 800 main
// FRAMES-NOT: {{enter|exit}} leave
// FRAMES: exit main

// A unit of which nothing is recorded still says that a filter was at work (the flags behind version 1).
// ALL-NOT: load ptr, ptr %{{.*}}__memlode_cursor
// ALL: @memlode.table{{.*}} = {{.*}}c"MLTB\02\00\01\00

//--- accesses
exclude
//--- frames
exclude
exclude kind=frames function=lea*
//--- all
exclude kind=all
//--- a.c
#include <stdlib.h>
static long Sink;
__attribute__((noinline)) static void leaf(long *P) { Sink += *P; }
__attribute__((noinline)) static void leaves(long *P) {
  for (int I = 0; I < 100; ++I) {
    leaf(P + I);
    __asm__ volatile("");
  }
}
int main(void) {
  long *P = malloc(800);
  leaves(P);
  free(P);
  return 0;
}
