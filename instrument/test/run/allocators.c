// What the usual functions make and end.
// RUN: %memlode-c -O1 -fno-builtin -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s

#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

int main(void) {
  // CHECK: alloc some 100 main
  void *P = malloc(100);
  // CHECK: realloc some 200 some main
  P = realloc(P, 200);
  // CHECK: realloc some 300 some main
  P = reallocarray(P, 10, 30);
  // CHECK: free some
  free(P);
  // CHECK: realloc some 40 null main
  P = realloc(NULL, 40);
  // CHECK: free some
  free(P);
  // CHECK: alloc_array some 7 8 main
  P = calloc(7, 8);
  // CHECK: free some
  free(P);
  // CHECK: alloc some 640 main
  P = aligned_alloc(64, 640);
  // CHECK: free some
  free(P);
  // CHECK: alloc some 30 main
  if (posix_memalign(&P, 64, 30) == 0)
    // CHECK: free some
    free(P);
  // The alignment is none: nothing was made.
  // CHECK: alloc null 30 main
  if (posix_memalign(&P, 3, 30) == 0)
    return 1;
  // CHECK: alloc some 50 main
  P = memalign(32, 50);
  // CHECK: free some
  free(P);
  // CHECK: free null
  free(NULL);
  // CHECK: alloc some 8192 main
  char *M = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  // CHECK: realloc some 16384 some main
  M = mremap(M, 8192, 16384, MREMAP_MAYMOVE);
  // CHECK: unmap some 16384
  munmap(M, 16384);
  // CHECK: alloc null 4096 main
  M = mmap(NULL, 4096, PROT_READ, MAP_SHARED, -1, 0);
  return M != MAP_FAILED;
}
