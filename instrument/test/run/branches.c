// The loads on which the branch behind an access depends, as the table says: `then` has their lines,
// { alternatives } { and others }; "nothing" where no load decides, and no lines where only another
// function does.
// RUN: %memlode-c -O2 -fno-vectorize -fno-unroll-loops -c %s -o %t.o && %link %t.o -o %t
// RUN: env MEMLODE_TEST_PRINT=b %t | sort -u | %FileCheck %s

#define APART __attribute__((noinline))

struct node {
  long key;
  struct node *left, *right;
};

struct node Nodes[64];
long Data[64], Index[64], Other[64];

// The loop ends by its count, and no load decides where it goes on.
APART void copy(long *To, const long *From, long Length) {
  for (long I = 0; I < Length; ++I)
    __asm__ volatile("" : : "r"(To[I] = From[I])); // CHECK-DAG: load 8 copy:[[#@LINE]] then nothing
}

// Which child is next depends on the key, and whether there is one, on the pointer.
APART const struct node *search(const struct node *N, long Key) {
  while (N) {
    if (N->key == Key) // CHECK-DAG: load 8 search:[[#@LINE]] chased then { [[#@LINE]] }
      return N;
    N = N->key < Key ? N->left : N->right; // CHECK-DAG: load 8 search:[[#@LINE]] chased then { [[#@LINE]] }
  }
  return 0;
}

// Between the first load and the next one lie two branches, and they depend on different loads.
APART void both(const long *A, const long *B, long *Out) {
  long First = A[0];
  long Second = B[0]; // CHECK-DAG: load 8 both:[[#@LINE]] then { [[#@LINE-1]] } { [[#@LINE]] }
  __asm__ volatile("" : : "r"(First), "r"(Second));
  if (First > 3) {
    __asm__ volatile("");
    if (Second > 5)
      Out[0] = 1; // CHECK-DAG: store 8 both:[[#@LINE]] then{{$}}
  }
}

APART long decide(long Of) {
  __asm__ volatile("");
  return Of & 1;
}

// Another function decides, and what lies behind a return is its caller's.
APART void asked(const long *A, long *Out) {
  const long First = A[1]; // CHECK-DAG: load 8 asked:[[#@LINE]] then{{$}}
  if (decide(First))
    Out[1] = 1; // CHECK-DAG: store 8 asked:[[#@LINE]] then{{$}}
}

int main(void) {
  for (int I = 0; I < 64; ++I)
    Nodes[I] = (struct node){I, I < 31 ? &Nodes[2 * I + 1] : 0, I < 31 ? &Nodes[2 * I + 2] : 0};
  copy(Data, Index, 64);
  search(Nodes, 20);
  Data[0] = Index[0] = 9;
  both(Data, Index, Other);
  Data[1] = 1;
  asked(Data, Other);
  return 0;
}
