// Memory operands of inline assembly are accesses: read, written or both in one. The rest of what assembly may touch is
// not recorded, which the table says.
// REQUIRES: x86
// RUN: %memlode-c -O1 -c %s -o %t.o -Rpass-missed=memlode 2>&1 | %FileCheck %s --check-prefix=MISSED
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// RUN: env MEMLODE_MODE=both %memlode-c -O2 -c %s -o %t.both.o
// RUN: %link %t.both.o -o %t.both && %t.both 2>&1 | %FileCheck %s --check-prefix=AGREE

struct pair {
  long a, b;
} pair;
int number;

// CHECK: enter operands
__attribute__((noinline)) static long operands(struct pair *p) {
  long sum;
  // CHECK: load 8 operands:[[#@LINE+1]]
  __asm__("movq %1, %0" : "=r"(sum) : "m"(p->a));
  // CHECK: store 8 operands:[[#@LINE+1]]
  __asm__("movq $7, %0" : "=m"(p->b));
  // CHECK: update 4 operands:[[#@LINE+1]]
  __asm__("lock incl %0" : "+m"(number));
  // CHECK: load 16 operands:[[#@LINE+1]]
  __asm__("movq %1, %0" : "=r"(sum) : "m"(*p));
  // CHECK-NOT: operands:[[#@LINE+1]]
  __asm__ volatile("prefetcht0 %0" ::"m"(p->a));
  // CHECK-NOT: operands:[[#@LINE+1]]
  __asm__ volatile("" : "+m"(p->a));
  __asm__ volatile("mfence" ::: "memory");
  // CHECK: update 8 operands:[[#@LINE+2]]
  // MISSED: :[[#@LINE+1]]:{{.*}}inline assembly may touch memory other than its operands
  __asm__("leaq %0, %%rax\n\tleaq (%%rax), %%rax\n\taddq $0, (%%rax)" : "+m"(p->a) : : "rax", "cc");
  // MISSED: :[[#@LINE+1]]:{{.*}}inline assembly may touch memory other than its operands
  __asm__("movq (%1), %0" : "=r"(sum) : "r"(p));
  // MISSED-NOT: remark
  return sum;
}

// AGREE: {{[1-9][0-9]*}} accesses agree
int main(void) {
  pair.a = 5;
  return operands(&pair) != 5 || pair.b != 7 || number != 1;
}
