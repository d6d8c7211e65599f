// Every form of operator new and delete; placement forms and a class's own make nothing.
// RUN: %memlode-cxx -O0 -std=c++17 -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// RUN: %memlode-cxx -O2 -std=c++17 -fno-assume-sane-operator-new -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s

#include <new>

struct alignas(64) Line {
  char Bytes[64];
};

struct Pooled {
  static char Memory[64];
  static void *operator new(std::size_t) { return Memory; }
  static void operator delete(void *) {}
  int X;
};
char Pooled::Memory[64];

void *volatile Kept;
template <class T> static T *keep(T *P) {
  Kept = P;
  return static_cast<T *>(Kept);
}

int main() {
  // CHECK: alloc some 4 main
  int *P = keep(new int);
  // CHECK: free some main
  delete P;
  // CHECK: alloc some 40 main
  P = keep(new int[10]);
  // CHECK: free some main
  delete[] P;
  // CHECK: alloc some 4 main
  P = keep(new (std::nothrow) int);
  // CHECK: free some main
  delete P;
  // CHECK: alloc some 64 main
  Line *L = keep(new Line);
  // CHECK: free some main
  delete L;
  // CHECK: alloc some 192 main
  L = keep(new Line[3]);
  // CHECK: free some main
  delete[] L;
  // CHECK-NOT: alloc
  // CHECK-NOT: free
  alignas(int) char Here[4];
  P = keep(new (Here) int);
  Pooled *Q = keep(new Pooled);
  delete Q;
  return 0;
}
