// What an access promises to other threads, and whether it asks for a way past the caches, or for a line that nothing waits for.
// RUN: %memlode-c -O2 -c %s -o %t.o && %link %t.o -o %t
// RUN: env MEMLODE_TEST_PRINT=o %t | sort -u | %FileCheck %s

#include <stdatomic.h>

_Atomic long A;
volatile long V;
long Plain, Stream[8];

__attribute__((noinline)) long all(long X) {
  Plain = X;                                          // CHECK-DAG: store 8 all:[[#@LINE]], plain{{$}}
  V = X;                                              // CHECK-DAG: store 8 all:[[#@LINE]], plain volatile{{$}}
  __builtin_nontemporal_store(X, &Stream[1]);         // CHECK-DAG: store 8 all:[[#@LINE]], plain non-temporal{{$}}
  X += __builtin_nontemporal_load(&Stream[2]);        // CHECK-DAG: load 8 all:[[#@LINE]], plain non-temporal{{$}}
  __builtin_prefetch(&Stream[3]);                     // CHECK-DAG: load 1 all:[[#@LINE]], plain prefetch{{$}}
  __builtin_prefetch(&Stream[4], 1, 0);               // CHECK-DAG: load 1 all:[[#@LINE]], plain prefetch{{$}}
  atomic_store_explicit(&A, X, memory_order_relaxed); // CHECK-DAG: store 8 all:[[#@LINE]], atomic{{$}}
  atomic_store_explicit(&A, X, memory_order_release); // CHECK-DAG: store 8 all:[[#@LINE]], atomic release{{$}}
  A = X;                                              // CHECK-DAG: store 8 all:[[#@LINE]], atomic release sequential{{$}}
  X += atomic_load_explicit(&A, memory_order_relaxed); // CHECK-DAG: load 8 all:[[#@LINE]], atomic{{$}}
  X += atomic_load_explicit(&A, memory_order_acquire); // CHECK-DAG: load 8 all:[[#@LINE]], atomic acquire{{$}}
  X += A;                                             // CHECK-DAG: load 8 all:[[#@LINE]], atomic acquire sequential{{$}}
  X += atomic_fetch_add_explicit(&A, 1, memory_order_relaxed); // CHECK-DAG: update 8 all:[[#@LINE]], atomic{{$}}
  X += atomic_fetch_add_explicit(&A, 1, memory_order_acq_rel); // CHECK-DAG: update 8 all:[[#@LINE]], atomic acquire release{{$}}
  X += atomic_exchange(&A, X);                        // CHECK-DAG: update 8 all:[[#@LINE]], atomic acquire release sequential{{$}}
  atomic_compare_exchange_strong_explicit(&A, &X, 7, memory_order_release, // CHECK-DAG: update 8 all:[[#@LINE]], atomic release{{$}}
                                          memory_order_relaxed);
  Plain = X;                                          // CHECK-DAG: store 8 all:[[#@LINE]], plain fenced{{$}}
  atomic_thread_fence(memory_order_seq_cst);
  V = X;                                              // CHECK-DAG: store 8 all:[[#@LINE]], plain volatile{{$}}
  atomic_thread_fence(memory_order_acq_rel);
  return X;
}

__attribute__((noinline)) void begins_fenced(long X) {
  __builtin_ia32_mfence();
  Plain = X;                                          // CHECK-DAG: store 8 begins_fenced:[[#@LINE]], plain fenced{{$}}
  Stream[0] = X;                                      // CHECK-DAG: store 8 begins_fenced:[[#@LINE]], plain{{$}}
}

// Of what merely adds, only the sum counts.
long Sum, Rest, Kept;
double Float;

__attribute__((noinline)) long adds(long X, double Y) {
  atomic_fetch_add_explicit(&A, X, memory_order_relaxed); // CHECK-DAG: update 8 adds:[[#@LINE]], atomic adds{{$}}
  atomic_fetch_sub_explicit(&A, X, memory_order_relaxed); // CHECK-DAG: update 8 adds:[[#@LINE]], atomic adds{{$}}
  atomic_fetch_or_explicit(&A, X, memory_order_relaxed);  // CHECK-DAG: update 8 adds:[[#@LINE]], atomic{{$}}
  V++;                                                // CHECK-DAG: load 8 adds:[[#@LINE]], plain volatile adds{{$}}
                                                      // CHECK-DAG: store 8 adds:[[#@LINE-1]], plain volatile adds{{$}}
  Sum -= X;                                           // CHECK-DAG: load 8 adds:[[#@LINE]], plain adds{{$}}
                                                      // CHECK-DAG: store 8 adds:[[#@LINE-1]], plain adds{{$}}
  Float += Y;                                         // CHECK-DAG: store 8 adds:[[#@LINE]], plain adds{{$}}
  Rest = X - Rest;                                    // CHECK-DAG: store 8 adds:[[#@LINE]], plain{{$}}
  return Kept += X;                                   // CHECK-DAG: store 8 adds:[[#@LINE]], plain{{$}}
}

int main(void) {
  begins_fenced(3);
  adds(3, 4);
  return all(3) == 42;
}
