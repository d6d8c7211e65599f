// Memory resources: their virtual functions lie in libstdc++, or are the program's own and pass on.
// Operator new by pointer; destructors, which are called like free, end nothing.
// RUN: %memlode-cxx -O0 -std=c++17 -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// RUN: %memlode-cxx -O2 -std=c++17 -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// Where the linker has the plug-in, the calls of the resources were inlined before.
// RUN: %if lld %{ %clangxx -g -O2 -std=c++17 -flto -c %s -o %t.o %}
// RUN: %if lld %{ %link -O2 -flto -fuse-ld=lld -Wl,--load-pass-plugin=%plugin %t.o -o %t %}
// RUN: %if lld %{ env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s %}

#include <memory_resource>
#include <new>

struct Shape {
  virtual ~Shape() {}
};

void *(*Get)(std::size_t) = operator new;
void (*Put)(void *) = operator delete;
void *(*GetEven)(std::size_t, std::align_val_t) = operator new;
void (*PutEven)(void *, std::align_val_t) = operator delete;
void *(*Try)(std::size_t, const std::nothrow_t &) noexcept = operator new;
std::pmr::memory_resource *Usual = std::pmr::new_delete_resource();
Shape *volatile Some;

__attribute__((noinline)) static void end(Shape *S) { S->~Shape(); }

int main() {
  // CHECK: alloc some 72 main
  void *P = Get(72);
  // CHECK: free some main
  Put(P);
  // CHECK: alloc some 128 main
  P = GetEven(128, std::align_val_t(64));
  // CHECK: free some main
  PutEven(P, std::align_val_t(64));
  // CHECK: alloc some 56 main
  P = Try(56, std::nothrow);
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
