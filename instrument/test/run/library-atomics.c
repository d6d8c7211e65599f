// Atomic operations that are calls: each is one of its object, in the order that it asks for, and a
// point where threads are ordered; what is copied beside it is no atomic access.
// RUN: %memlode-c -O1 -Wno-atomic-alignment -c %s -o %t.o
// RUN: %clang -c -x c - -o %t.library.o < %S/Inputs/atomics.c
// RUN: %link %t.o %t.library.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s

struct large {
  long a, b, c;
} object, got, wanted = {1, 2, 3}, other;

long add(volatile void *, long, int) __asm__("__atomic_fetch_add_8");

int main(void) {
  // CHECK: sync 1
  // CHECK-NEXT: load 24 main:[[#@LINE+2]]
  // CHECK-NEXT: store 24 main:[[#@LINE+1]]
  __atomic_store(&object, &wanted, __ATOMIC_RELEASE);
  // CHECK-NEXT: load 24 main:[[#@LINE+3]]
  // CHECK-NEXT: store 24 main:[[#@LINE+2]]
  // CHECK-NEXT: sync 0
  __atomic_load(&object, &got, __ATOMIC_ACQUIRE);
  // It succeeds, and so stores nothing in what was expected.
  // CHECK-NEXT: sync 1
  // CHECK-NEXT: load 24 main:[[#@LINE+5]]
  // CHECK-NEXT: load 24 main:[[#@LINE+4]]
  // CHECK-NEXT: update 24 main:[[#@LINE+3]]
  // CHECK-NEXT: sync 0
  // CHECK-NEXT: store 0 main:[[#@LINE+1]]
  __atomic_compare_exchange(&object, &got, &wanted, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
  // It fails.
  // CHECK-NEXT: sync 1
  // CHECK-NEXT: load 24 main:[[#@LINE+5]]
  // CHECK-NEXT: load 24 main:[[#@LINE+4]]
  // CHECK-NEXT: update 24 main:[[#@LINE+3]]
  // CHECK-NEXT: sync 0
  // CHECK-NEXT: store 24 main:[[#@LINE+1]]
  __atomic_compare_exchange(&object, &other, &wanted, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
  // CHECK-NEXT: update 8 main:[[#@LINE+1]]
  return (int)add(&object.a, 0, __ATOMIC_RELAXED) != 1;
}
