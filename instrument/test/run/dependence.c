// What an address comes out of: of a load that waits for the same load of the turn before (chased), of another load (loaded), of arithmetic
// without any (computed), or of nothing worth a word. The same is seen of optimised code, of code that keeps its variables in
// the stack, and of the program as it is written.
// RUN: %memlode-c -O2 -c %s -o %t.o && %link %t.o -o %t
// RUN: env MEMLODE_TEST_PRINT=1 %t | sort -u | %FileCheck %s --implicit-check-not=' none:{{[0-9]+ [a-z]}}'
// RUN: %memlode-c -O0 -c %s -o %t.o && %link %t.o -o %t
// RUN: env MEMLODE_TEST_PRINT=1 %t | sort -u | %FileCheck %s --implicit-check-not=' none:{{[0-9]+ [a-z]}}'
// RUN: env MEMLODE_FIDELITY=source %memlode-c -O2 -c %s -o %t.o && %link %t.o -o %t
// RUN: env MEMLODE_TEST_PRINT=1 %t | sort -u | %FileCheck %s --implicit-check-not=' none:{{[0-9]+ [a-z]}}'

#define APART __attribute__((noinline))

struct node {
  long key;
  struct node *next;
  int *idx;
};
struct tree {
  struct tree *child[2];
  long key;
};
struct map {
  struct node **buckets;
};

struct node Nodes[64], *Buckets[64], *Pointers[64];
struct tree Trees[63];
struct map Map = {Buckets};
int Data[64], Index[64];

APART long list(const struct node *N) {
  long Sum = 0;
  while (N) {
    Sum += N->key; // CHECK-DAG: load 8 list:[[#@LINE]] chased{{$}}
    N = N->next;   // CHECK-DAG: load 8 list:[[#@LINE]] chased{{$}}
  }
  return Sum;
}

APART void ahead(struct node *N) {
  for (struct node *Next; N; N = Next) {
    Next = N->next; // CHECK-DAG: load 8 ahead:[[#@LINE]] chased{{$}}
    N->key++;       // CHECK-DAG: store 8 ahead:[[#@LINE]] chased{{$}}
  }
}

APART const struct tree *search(const struct tree *T, long Key) {
  while (T && T->key != Key)      // CHECK-DAG: load 8 search:[[#@LINE]] chased{{$}}
    T = T->child[Key > T->key];   // CHECK-DAG: load 8 search:[[#@LINE]] chased{{$}}
  return T;
}

// The call that is left goes from a node to its child; the other becomes a loop when it is optimised.
APART long visit(const struct tree *T) {
  if (!T)
    return 0;
  long Below = visit(T->child[0]) + visit(T->child[1]); // CHECK-DAG: load 8 visit:[[#@LINE]] chased{{$}}
  return T->key + Below;                                // CHECK-DAG: load 8 visit:[[#@LINE]] chased{{$}}
}

// A table that is found in a member does not make its index a loaded one.
APART const struct node *lookup(const struct map *M, unsigned long Key) {
  const struct node *N =
      M->buckets[Key * 0x9e3779b97f4a7c15 >> 58]; // CHECK-DAG: load 8 lookup:[[#@LINE]] computed{{$}}
  __asm__("" : "+r"(N));                          // or one load of the optimised code is both this and the next
  while (N && N->key != (long)Key)                // CHECK-DAG: load 8 lookup:[[#@LINE]] chased{{$}}
    N = N->next;                                  // CHECK-DAG: load 8 lookup:[[#@LINE]] chased{{$}}
  return N;
}

APART int indices(int I, int Turns) {
  while (Turns--)
    I = Index[I]; // CHECK-DAG: load 4 indices:[[#@LINE]] chased{{$}}
  return I;
}

APART long gather(const int *Idx, int N) {
  long Sum = 0;
  for (int I = 0; I < N; I++)
    Sum += Data[Idx[I]]; // CHECK-DAG: load 4 gather:[[#@LINE]] loaded{{$}}
  return Sum;
}

APART long pointers(int N) {
  long Sum = 0;
  for (int I = 0; I < N; I++) {
    // One variable after the other, but no chain: each turn begins anew.
    const struct node *P = Pointers[I];
    P = P->next;   // CHECK-DAG: load 8 pointers:[[#@LINE]] loaded{{$}}
    Sum += P->key; // CHECK-DAG: load 8 pointers:[[#@LINE]] loaded{{$}}
  }
  return Sum;
}

// Each node leads to many indices, and these to what does not wait for each other.
APART long both(const struct node *N, int Each) {
  long Sum = 0;
  for (; N; N = N->next)
    for (int I = 0; I < Each; I++) {
      const int *At = &N->idx[I]; // CHECK-DAG: load 8 both:[[#@LINE]] chased{{$}}
      Sum += Data[*At];           // CHECK-DAG: load 4 both:[[#@LINE]] loaded{{$}}
    }
  return Sum;
}

APART void computed(unsigned N) {
  for (unsigned I = 0; I < N; I++)
    Data[I * 40503 >> 4 & 63] = I; // CHECK-DAG: store 4 computed:[[#@LINE]] computed{{$}}
}

APART long none(const long *From, struct node *N, int Count) {
  long Sum = 0;
  for (int I = 0; I < Count; I++)
    Sum += From[2 * I]; // CHECK-DAG: load 8 none:[[#@LINE]]{{$}}
  N->key = Sum;         // CHECK-DAG: store 8 none:[[#@LINE]]{{$}}
  return Sum + Data[3];
}

int main(void) {
  static int Four[4] = {1, 2, 3, 4};
  static long Numbers[64];
  volatile unsigned long Missing = 99; // a constant would make a function of its own
  for (int I = 0; I < 63; I++) {
    Nodes[I] = (struct node){I, &Nodes[I + 1], Four};
    Trees[I].key = I;
    for (int C = 0; C < 2; C++)
      Trees[I].child[C] = 2 * I + 1 + C < 63 ? &Trees[2 * I + 1 + C] : 0;
  }
  Nodes[63].idx = Four;
  for (int I = 0; I < 64; I++) {
    Pointers[I] = &Nodes[I / 2];
    Buckets[I] = &Nodes[I];
    Index[I] = 63 - I;
  }
  ahead(Nodes);
  computed(64);
  for (int I = 0; I < 64; I++)
    Index[I] = Data[I] & 63;
  long Sum = list(Nodes) + visit(Trees) + indices(3, 10) + gather(Index, 64) + pointers(64) + both(Nodes, 4);
  return Sum == 0 || search(Trees, 62) == Trees || lookup(&Map, Missing) || none(Numbers, Nodes, 32) != Data[3];
}
