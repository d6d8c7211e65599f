// Values are recorded where a rule includes them, and of what is recorded at all.
// RUN: printf 'include kind=values type=chosen\nexclude kind=values function=not_here\nexclude function=nothing\n' > %t.rules
// RUN: env MEMLODE_FILTER=%t.rules %memlode-c -O1 -c %s -o %t.o && %link %t.o -o %t
// RUN: env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// Or everywhere, unless a rule excludes them.
// RUN: env MEMLODE_VALUES=1 MEMLODE_FILTER=%t.rules %memlode-c -O1 -c %s -o %t.o && %link %t.o -o %t
// RUN: env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s --check-prefix=ALL
// RUN: not env MEMLODE_VALUES=all %memlode-c -c %s -o %t.o 2>&1 | %FileCheck %s --check-prefix=BAD
// BAD: error: memlode: MEMLODE_VALUES is 'all'; expected '0' or '1', or unset

struct chosen {
  int a;
};
struct other {
  int a;
};
static volatile struct chosen C;
static volatile struct other O;

__attribute__((noinline)) static void here(void) {
  C.a = 1;
  O.a = 2;
}
// CHECK: enter here
// CHECK-NEXT: store
// CHECK-NEXT: value 1
// CHECK-NEXT: store
// CHECK-NEXT: exit here
// ALL: enter here
// ALL-NEXT: store
// ALL-NEXT: value 1
// ALL-NEXT: store
// ALL-NEXT: value 2
// ALL-NEXT: exit here

__attribute__((noinline)) static void not_here(void) { C.a = 3; }
// CHECK: enter not_here
// CHECK-NEXT: store
// CHECK-NEXT: exit not_here
// ALL: enter not_here
// ALL-NEXT: store
// ALL-NEXT: exit not_here

__attribute__((noinline)) static void nothing(void) { C.a = 4; }
// CHECK-NEXT: exit main
// ALL-NEXT: exit main

int main(void) {
  here();
  not_here();
  nothing();
  return 0;
}
