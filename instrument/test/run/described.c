// What flang's library makes and ends: it is given a descriptor, which tells the address and the size.
// RUN: %memlode-c -O1 -fno-builtin -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s

#include <stddef.h>

struct descriptor {
  void *data;
  long element_bytes;
  int version;
  signed char rank, type, attribute, extra;
  long dimension[2][3];
};

static double memory[100];

__attribute__((noinline, optnone)) int _FortranAAllocatableAllocate(struct descriptor *d, long stream) {
  if (stream < 0)
    return 1;
  d->data = memory;
  return 0;
}

__attribute__((noinline, optnone)) int _FortranAAllocatableDeallocate(struct descriptor *d) {
  d->data = NULL;
  return 0;
}

int main(void) {
  struct descriptor matrix = {NULL, 24, 0, 2, 0, 0, 0, {{1, 4, 24}, {1, 5, 96}}};
  struct descriptor scalar = {NULL, 24, 0, 0, 0, 0, 0, {{0}}};
  // CHECK: alloc some 480 main
  _FortranAAllocatableAllocate(&matrix, 0);
  // CHECK: alloc some 24 main
  _FortranAAllocatableAllocate(&scalar, 0);
  // CHECK: free some
  _FortranAAllocatableDeallocate(&matrix);
  // CHECK: alloc null 480 main
  _FortranAAllocatableAllocate(&matrix, -1);
  // CHECK: free some
  return _FortranAAllocatableDeallocate(&scalar);
}
