// What an access waits for, and how many instructions lie before it: as the table says, beside the accesses of small programs. `from` has
// the lines of the loads that the address is made of, `of` those of what is stored: { alternatives } { and others }; a line' is meant as
// it was executed in the turn before.
// RUN: %memlode-c -O2 -fno-vectorize -fno-unroll-loops -c %s -o %t.o && %link %t.o -o %t
// RUN: env MEMLODE_TEST_PRINT=w %t | sort -u | %FileCheck %s

#define APART __attribute__((noinline))

struct node {
  long key;
  struct node *next;
  struct node *other;
};

struct node Nodes[64];
long Data[64], Index[64], Out[64];
_Atomic long Count;

APART long list(const struct node *N) {
  long Sum = 0;
  while (N) {
    Sum += N->key; // CHECK-DAG: load 8 list:[[#@LINE]] chased after {{[1-4]}}, from { [[#@LINE+1]] }, of{{$}}
    N = N->next;   // CHECK-DAG: load 8 list:[[#@LINE]] chased after {{[1-3]}}, from { [[#@LINE]] }, of{{$}}
  }
  return Sum;
}

// One of two, by what the key says: a group of both.
APART long search(const struct node *N, long Key) {
  while (N) {
    if (N->key == Key)  // CHECK-DAG: load 8 search:[[#@LINE]] chased after {{[0-9]+}}, from { {{.*}}[[#@LINE+2]]{{.*}} }, of{{$}}
      return 1;
    N = N->key < Key ? N->next : N->other;
  }
  return 0;
}

// Each turn needs what both loads of the turn before gave: when the second begins, the first has been executed again.
APART long mix(const long *A, const long *B, long Turns) {
  long At = 0;
  for (long I = 0; I < Turns; ++I)
    At = A[At] ^ // CHECK-DAG: load 8 mix:[[#@LINE]] chased after {{[1-4]}}, from { [[#@LINE]] [[#@LINE+1]] }, of{{$}}
         B[At];  // CHECK-DAG: load 8 mix:[[#@LINE]] chased after {{[1-5]}}, from { [[#@LINE-1]]' [[#@LINE]] }, of{{$}}
  return At;
}

// The next node is loaded first: what is written then is in the node that the turn before found.
APART void mark(struct node *N) {
  while (N) {
    struct node *Next = N->next; // CHECK-DAG: load 8 mark:[[#@LINE]] chased after {{[1-4]}}, from { [[#@LINE]] }, of{{$}}
    __asm__ volatile("" ::: "memory");
    N->key = 0; // CHECK-DAG: store 8 mark:[[#@LINE]] {{.*}}after {{[1-4]}}, from { [[#@LINE-2]]' }, of{{$}}
    N = Next;
  }
}

// An index that was loaded: what is stored is made of one load and its place of another.
APART void scatter(long *restrict To, const long *restrict From, const long *restrict Where, long Length) {
  for (long I = 0; I < Length; ++I)
    To[Where[I]] = From[I] + 1; // CHECK-DAG: store 8 scatter:[[#@LINE]] loaded after {{[1-5]}}, from { [[#@LINE]] }, of { [[#@LINE]] }
}

// Two loads, of which both are waited for.
APART long sum2(const long *From, const long *A, const long *B) {
  const long First = *A; // CHECK-DAG: load 8 sum2:[[#@LINE]] after {{[1-3]}}, from, of{{$}}
  const long Second = *B;
  return From[First + // CHECK-DAG: load 8 sum2:[[#@LINE]] loaded after {{[1-4]}}, from { [[#@LINE-2]] } { [[#@LINE-1]] }, of{{$}}
              Second];
}

// Arithmetic between two accesses is counted; a load through an argument waits for nothing that is known here.
APART long far(const long *A, long *B) {
  long X = *A; // CHECK-DAG: load 8 far:[[#@LINE]] after {{[1-3]}}, from, of{{$}}
#pragma clang loop unroll(full)
  for (int I = 0; I < 20; ++I)
    X = (X ^ (X >> 7)) * 25214903917;
  *B = X; // CHECK-DAG: store 8 far:[[#@LINE]] after {{(6[0-9]|[789][0-9]|1[0-4][0-9])}}, from, of { [[#@LINE-4]] }
  return X;
}

// A loop without an access, of so many turns: what it does lies before the access behind it.
APART void silent(long *To, double X) {
  for (int I = 0; I < 100; ++I)
    X = X * X + 0.25;
  *To = (long)X; // CHECK-DAG: store 8 silent:[[#@LINE]] after {{([3-9][0-9][0-9])}}, from, of{{$}}
}

APART long update(long By) {
  const long Before = Data[By]; // CHECK-DAG: load 8 update:[[#@LINE]] after {{[1-3]}}, from, of{{$}}
  Count += Before; // CHECK-DAG: update 8 update:[[#@LINE]] after {{[1-3]}}, from, of { [[#@LINE-1]] }
  return Before;
}

int main(void) {
  for (int I = 0; I < 63; ++I) {
    Nodes[I].next = Nodes[I].other = &Nodes[I + 1];
    Nodes[I].key = Index[I] = I;
  }
  long Sum = list(Nodes) + search(Nodes, 40) + sum2(Data, &Index[3], &Index[4]) + far(&Data[1], &Data[2]);
  Sum += mix(Index, Data, 3);
  mark(Nodes);
  scatter(Out, Data, Index, 63);
  silent(&Data[5], 0.5);
  return (Sum + update(3)) == 42;
}
