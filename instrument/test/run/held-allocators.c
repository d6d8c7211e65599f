// Allocators that a program holds in pointers: what they make and end is recorded as if they were called
// by name. The pointers are what they were, and other functions of their signatures make nothing.
// RUN: env MEMLODE_ALLOCATORS=%S/Inputs/pool.alloc %memlode-c -O0 -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// RUN: env MEMLODE_ALLOCATORS=%S/Inputs/pool.alloc %memlode-c -O2 -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define APART __attribute__((noinline))

struct hooks {
  void *(*get)(size_t);
  void *(*get_array)(size_t, size_t);
  void *(*grow)(void *, size_t);
  int (*get_aligned)(void **, size_t, size_t);
  void *(*map)(void *, size_t, int, int, int, off_t);
  int (*unmap)(void *, size_t);
  char *(*copy)(const char *);
  char *(*copy_some)(const char *, size_t);
  void (*put)(void *);
};

static char Pool[4096];
APART void *pool_take(int Kind, size_t Bytes) { return Pool + Kind + Bytes % 16; }
APART static void *other(size_t Bytes) { return Pool + Bytes; }
APART static void forget(void *P) { Pool[0] = P != Pool; }

struct hooks Hooks;
void *(*Take)(int, size_t);
static struct hooks Usual = {malloc, calloc, realloc, posix_memalign, mmap, munmap, strdup, strndup, free};

APART static void use(struct hooks *With) {
  void *P = With->get(100);
  P = With->grow(P, 200);
  With->put(P);
  With->put(With->get_array(7, 8));
  if (With->get_aligned(&P, 64, 30) == 0)
    With->put(P);
  P = With->map(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  With->unmap(P, 8192);
  With->put(With->copy("seven"));
  With->put(With->copy_some("seven", 3));
}

APART static void *passed(void *(*Get)(size_t), size_t Bytes) { return Get(Bytes); }

struct job {
  void (*run)(void *);
  void *with;
  _Atomic int waits, over;
};

// A loop that waits is looked at before the call gets its test.
APART void serve(struct job *From) {
  for (;;) {
    while (From->waits)
      if (From->over)
        return;
    From->run(From->with);
  }
}

int main(void) {
  Hooks = Usual;
  Take = pool_take;
  // CHECK: enter use
  // CHECK: alloc some 100 use
  // CHECK: realloc some 200 some use
  // CHECK: free some
  // CHECK: alloc_array some 7 8 use
  // CHECK: free some
  // CHECK: alloc some 30 use
  // CHECK: free some
  // CHECK: alloc some 8192 use
  // CHECK: unmap some 8192
  // CHECK: alloc some 6 use
  // CHECK: free some
  // CHECK: alloc some 4 use
  // CHECK: free some
  use(&Hooks);
  // CHECK: enter passed
  // CHECK: alloc some 40 passed
  free(passed(malloc, 40));
  // CHECK: enter passed
  // CHECK-NOT: alloc
  // CHECK: enter passed
  Hooks.get = other;
  Hooks.put = forget;
  Hooks.put(passed(Hooks.get, 50));
  // CHECK: alloc null {{[0-9]+}} passed
  passed(malloc, (size_t)-1 / 4);
  // A function that the user named.
  // CHECK: alloc some 24 main
  return Take(0, 24) != Pool + 8 || Usual.get != malloc || Usual.put != free;
}
