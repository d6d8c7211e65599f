// What mimalloc and jemalloc make, by their own names and signatures.
// RUN: %memlode-c -O1 -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s

#include <stddef.h>
#include <stdio.h>

#define APART __attribute__((noinline))

static char pool[1 << 16];
static size_t used;
static APART void *piece(size_t size) {
  used += (size + 63) / 64 * 64;
  return &pool[used - (size + 63) / 64 * 64];
}

APART void *mi_malloc_aligned(size_t size, size_t alignment) { return alignment ? piece(size) : NULL; }
APART void *mi_calloc(size_t count, size_t size) { return piece(count * size); }
APART void *mi_realloc_aligned(void *p, size_t size, size_t alignment) {
  return p && alignment ? piece(size) : p;
}
APART void *mi_reallocn(void *p, size_t count, size_t size) { return p ? piece(count * size) : p; }
APART void mi_free_size(void *p, size_t size) { used += !p + size / (1 << 20); }
APART void *_rjem_mallocx(size_t size, int flags) { return piece(size + (size_t)flags); }
APART void *_rjem_rallocx(void *p, size_t size, int flags) { return flags ? p : piece(size); }
APART void _rjem_sdallocx(void *p, size_t size, int flags) { used += !p + size / (1 << 20) + (size_t)flags; }
APART void *je_aligned_alloc(size_t alignment, size_t size) { return piece(size + alignment / (1 << 20)); }

int main(void) {
  // CHECK: alloc some 100 main
  void *P = mi_malloc_aligned(100, 16);
  // CHECK: realloc some 200 some main
  P = mi_realloc_aligned(P, 200, 16);
  // CHECK: realloc some 300 some main
  P = mi_reallocn(P, 3, 100);
  // CHECK: free some
  mi_free_size(P, 300);
  // CHECK: alloc_array some 7 8 main
  P = mi_calloc(7, 8);
  // CHECK: free some
  mi_free_size(P, 56);
  // CHECK: alloc some 640 main
  P = _rjem_mallocx(640, 0);
  // CHECK: realloc some 700 some main
  P = _rjem_rallocx(P, 700, 0);
  // CHECK: free some
  _rjem_sdallocx(P, 700, 0);
  // CHECK: alloc some 320 main
  P = je_aligned_alloc(64, 320);
  return printf("%d\n", P == NULL) < 0;
}
