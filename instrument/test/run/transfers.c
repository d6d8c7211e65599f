// Copies and fills: intrinsics, library calls, structure assignment, sizes known and unknown.
// RUN: env MEMLODE_MODE=both %memlode-c -O0 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s --check-prefix=AGREE
// RUN: env MEMLODE_MODE=both %memlode-c -O2 -fno-builtin -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s --check-prefix=AGREE
// RUN: %memlode-c -O1 -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// RUN: %memlode-c -O1 -fno-builtin -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct Big {
  char Bytes[400];
};

char From[1000], To[1000];
struct Big A, B;

__attribute__((noinline)) static void copies(size_t N) {
  memcpy(To, From, N);
  memmove(To + 1, To, N);
  memset(To, 7, N);
  bcopy(From, To, N);
  bzero(To, N);
}

__attribute__((noinline)) static void fixed(struct Big *P, const struct Big *Q) { *P = *Q; }

int main(int Argc, char **Argv) {
  copies(99 + Argc);
  fixed(&A, &B);
  copies(0);
  printf("%d\n", To[0]);
  return 0;
}

// AGREE: {{[1-9][0-9]*}} accesses agree

// CHECK: enter copies
// CHECK: load 100 copies:[[#LINE:]]
// CHECK: store 100 copies:[[#LINE]]
// CHECK: load 100 copies:[[#LINE+1]]
// CHECK: store 100 copies:[[#LINE+1]]
// CHECK: store 100 copies:[[#LINE+2]]
// CHECK: load 100 copies:[[#LINE+3]]
// CHECK: store 100 copies:[[#LINE+3]]
// CHECK: store 100 copies:[[#LINE+4]]
// CHECK: enter fixed
// CHECK: load 400 fixed
// CHECK: store 400 fixed
// CHECK: enter copies
// CHECK: load 0 copies
