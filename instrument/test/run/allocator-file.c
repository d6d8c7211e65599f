// A program's own allocation functions, named in a file; they are kept from being inlined.
// RUN: env MEMLODE_ALLOCATORS=%S/Inputs/pool.alloc %memlode-c -O2 -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s

#include <stddef.h>
#include <stdio.h>

static char Pool[4096];
static size_t Used;

static void *pool_take(int Kind, size_t Bytes) {
  void *P = Pool + Used;
  Used += Bytes + Kind;
  return P;
}

static void pool_array(size_t Count, size_t Bytes, void **Out) { *Out = pool_take(0, Count * Bytes); }

static void pool_free(int Kind, void *P) {
  if ((char *)P + Kind == Pool)
    Used = 0;
}

static void *pool_grow(void *P, int Kind, size_t Bytes) {
  pool_free(Kind, P);
  return pool_take(Kind, Bytes);
}

int main(void) {
  void *Q;
  // CHECK: enter pool_take
  // CHECK: alloc some 24 main
  char *P = pool_take(0, 24);
  // CHECK: alloc_array some 5 8 main
  pool_array(5, 8, &Q);
  // CHECK: realloc some 48 some main
  P = pool_grow(P, 1, 48);
  // CHECK: free some main
  pool_free(1, P);
  printf("%zu\n", Used);
  return 0;
}
