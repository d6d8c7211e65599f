// Memory resources: their virtual functions lie in libstdc++, or are the program's own and pass on.
// Operator new by pointer; destructors, which are called like free, end nothing.
// RUN: %memlode-cxx -O0 -std=c++17 -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// RUN: %memlode-cxx -O2 -std=c++17 -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s

#include <memory_resource>
#include <new>

struct Shape {
  virtual ~Shape() {}
};

void *(*Get)(std::size_t) = operator new;
void (*Put)(void *) = operator delete;
std::pmr::memory_resource *Usual = std::pmr::new_delete_resource();
Shape *volatile Some;

__attribute__((noinline)) static void end(Shape *S) { S->~Shape(); }

int main() {
  // CHECK: alloc some 72 main
  void *P = Get(72);
  // CHECK: free some main
  Put(P);
  // CHECK: alloc some 96 {{main|std::pmr::memory_resource::allocate}}
  P = Usual->allocate(96, 8);
  // CHECK: free some
  Usual->deallocate(P, 96, 8);
  // CHECK-NOT: free
  Shape S;
  Some = &S;
  end(Some);
  Some->~Shape();
  return 0;
}
