// Ten million calls in tail position need no stack, recorded or not.
// RUN: env MEMLODE_MODE=both %memlode-c -O2 -c %s -o %t.o
// RUN: %link %t.o -o %t && ulimit -s 1024 && %t | %FileCheck %s
// RUN: %memlode-c -O2 -S -o - %s | %FileCheck %s --check-prefix=ASM

#include <stdio.h>

static long Counts[2];

__attribute__((noinline)) static long odd(long N);

__attribute__((noinline)) static long even(long N) {
  Counts[0]++;
  if (N == 0)
    return Counts[1];
  return odd(N - 1);
}

__attribute__((noinline)) static long odd(long N) {
  Counts[1]++;
  if (N == 0)
    return Counts[0];
  return even(N - 1);
}

int main(void) {
  printf("%ld\n", even(2000000));
  return 0;
}

// CHECK: 1000000
// ASM-LABEL: {{^}}even.recording:
// ASM-NOT: {{^[[:space:]]+}}callq{{[[:space:]]+}}{{odd|even}}
// ASM: jmp{{[[:space:]]+}}odd{{[[:space:]]}}
// ASM-LABEL: {{^}}odd.recording:
// ASM-NOT: {{^[[:space:]]+}}callq{{[[:space:]]+}}{{odd|even}}
// ASM: jmp{{[[:space:]]+}}even{{[[:space:]]}}
// ASM-LABEL: {{^}}even.dormant:
// ASM-NOT: {{^[[:space:]]+}}callq{{[[:space:]]+}}{{odd|even}}
// ASM: jmp{{[[:space:]]+}}odd{{[[:space:]]}}
