// Recording is switched off and on in every kind of place: what is recorded in between, and nothing else, is in
// the stream, and the program's own results are those of a program that is not instrumented.
// RUN: %memlode-c -O2 -c %s -o %t.o && %link %t.o -o %t
// RUN: %clang -O2 -DPLAIN %s -o %t.plain && %t.plain > %t.expected
// RUN: env MEMLODE_TEST_PRINT=1 %t > %t.out
// RUN: %FileCheck %s --input-file=%t.out
// RUN: env MEMLODE_MODE=both %memlode-c -O2 -c %s -o %t.both.o && %link %t.both.o -o %t.both
// RUN: %t.both > %t.printed && diff %t.expected %t.printed
// RUN: env MEMLODE_TEST_TOGGLE=1 %t.both > %t.printed && diff %t.expected %t.printed

#include <setjmp.h>
#include <stdio.h>

#ifdef PLAIN
static void memlode_test_record(int On) { (void)On; }
#else
void memlode_test_record(int On);
#endif

static volatile unsigned Before, In, After, Table[8];

__attribute__((noinline)) static void touch(volatile unsigned *Which, unsigned Value) { *Which += Value; }

// Off and on in the middle of a loop: its first and its last rounds are there, by the same frame.
__attribute__((noinline)) static unsigned loop(int Rounds) {
  unsigned Sum = 0;
  for (int I = 0; I < Rounds; ++I) {
    if (I == 2)
      memlode_test_record(0);
    if (I == 4)
      memlode_test_record(1);
    Table[I] = I;
    Sum += Table[I];
  }
  return Sum;
}
// CHECK: enter loop depth 2
// CHECK-NEXT: store 4 loop:[[#STORE:]]
// CHECK-NEXT: load
// CHECK-NEXT: store 4 loop:[[#STORE]]
// CHECK-NEXT: load
// The rest of the round in which it is switched off; at the head of the loop the code finds out.
// CHECK-NEXT: store 4 loop:[[#STORE]]
// CHECK-NEXT: load
// CHECK-NEXT: resume loop depth 2
// CHECK-NEXT: store 4 loop:[[#STORE]]
// CHECK-NEXT: load
// CHECK-NEXT: exit loop

// Switched off by a callee: the caller goes on on its dormant side when it can, and wakes up in a loop.
__attribute__((noinline)) static unsigned callee(int Rounds) {
  unsigned Sum = 0;
  for (int I = 0; I < Rounds; ++I) {
    touch(&Before, 1);
    if (I == 1)
      memlode_test_record(0);
    touch(&In, Before);
    if (I == 3)
      memlode_test_record(1);
    touch(&After, In);
    Sum += After;
  }
  return Sum;
}

// An interpreter that jumps through a table: each side has labels of its own, and changes where it jumps.
__attribute__((noinline)) static unsigned dispatch(const char *Code) {
  static const void *const Labels[] = {&&Add, &&Double, &&Off, &&On, &&End};
  unsigned Value = 1;
#define NEXT goto *Labels[*Code++ - '0']
  NEXT;
Add:
  Value += In;
  NEXT;
Double:
  Value *= 2;
  In = Value & 0xff;
  NEXT;
Off:
  memlode_test_record(0);
  NEXT;
On:
  memlode_test_record(1);
  NEXT;
End:
  return Value;
}

// Addresses of labels that are kept in memory: the sides share the labels, and jump from either to either.
__attribute__((noinline)) static unsigned threaded(const char *Code) {
  static const void *Threads[64];
  const void *const Labels[] = {&&Add, &&Double, &&Off, &&On, &&End};
  int Length = 0;
  for (; Code[Length]; ++Length)
    Threads[Length] = Labels[Code[Length] - '0'];
  const void **Next = Threads;
  unsigned Value = 1;
  goto **Next++;
Add:
  Value += In;
  goto **Next++;
Double:
  Value *= 2;
  In = Value & 0xff;
  goto **Next++;
Off:
  memlode_test_record(0);
  goto **Next++;
On:
  memlode_test_record(1);
  goto **Next++;
End:
  return Value;
}

// Left by a jump while asleep, and the other way round.
static jmp_buf Target;
__attribute__((noinline)) static void jumper(int On) {
  memlode_test_record(On);
  In += 3;
  longjmp(Target, 1);
}
__attribute__((noinline)) static unsigned jumped(void) {
  volatile int Tries = 0;
  if (setjmp(Target) == 0 || Tries < 5) {
    Tries = Tries + 1;
    jumper(Tries & 1);
  }
  memlode_test_record(1);
  return In;
}

// Called while off, so entered on the dormant side; it switches itself on.
__attribute__((noinline)) static unsigned sleeper(int Rounds) {
  memlode_test_record(1);
  unsigned Sum = 0;
  for (int I = 0; I < Rounds; ++I)
    touch(&In, I);
  for (int I = 0; I < Rounds; ++I)
    Sum += Table[I & 7];
  return Sum + In;
}

int main(void) {
  printf("%u\n", loop(6));
  printf("%u\n", callee(6));
  printf("%u\n", dispatch("0101210132210013104"));
  printf("%u\n", threaded("0101210132210013104"));
  printf("%u\n", jumped());
  memlode_test_record(0);
  printf("%u\n", sleeper(5));
  for (int I = 0; I < 200000; ++I)
    touch(&After, I);
  printf("%u\n", loop(8) + callee(40) + sleeper(40) + After);
  return 0;
}
