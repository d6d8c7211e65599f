// Assembly that defines what can be defined once is in the program once, whatever else of its function is there twice;
// what it defines by numbers or by %= may stand as often as it likes.
// REQUIRES: x86
// RUN: env MEMLODE_VERSIONS=1 %memlode-c -O2 -c %s -o %t.o -Rpass-missed=memlode 2>&1 | %FileCheck %s
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t > %t.txt
// RUN: env MEMLODE_VERSIONS=1 MEMLODE_MODE=both %memlode-c -O0 -c %s -o %t.both.o
// RUN: %link %t.both.o -o %t.both && %t.both 2>&1 | %FileCheck %s --check-prefix=AGREE
// RUN: env MEMLODE_FIDELITY=source %memlode-c -O2 -c %s -o %t.source.o
// RUN: %link %t.source.o -o %t.source && env MEMLODE_TEST_PRINT=1 %t.source > %t.txt

#define APART __attribute__((noinline))

extern const char marker[];
long Table[64];

// CHECK: :[[#@LINE+1]]:{{.*}}an assembly in it defines
APART static void label(int n) {
  for (int i = 0; i < n; i++)
    Table[(i * 7) & 63] += i;
  __asm__ volatile(".globl marker\nmarker: nop");
}

// CHECK: :[[#@LINE+1]]:{{.*}}an assembly in it defines
APART static void behind_comment(int n) {
  Table[n & 63]++;
  __asm__ volatile("nop # not: here\n\tnop; /* nor: here */ \"quoted\": nop\n\t.globl quoted");
}

// CHECK: :[[#@LINE+1]]:{{.*}}an assembly in it defines
APART static void symbol(int n) {
  Table[n & 63]++;
  __asm__ volatile(".globl set_here\n\t.set set_here, 4\n\tother_here = 5");
}

// CHECK: :[[#@LINE+1]]:{{.*}}an assembly in it defines
APART static void macro(int n) {
  Table[n & 63]++;
  __asm__ volatile(".macro memlode_nothing\n\tnop\n\t.endm\n\tmemlode_nothing");
}

// One entry of a table for each place, which a second copy would double.
// CHECK: :[[#@LINE+1]]:{{.*}}an assembly in it defines
APART static void section(int n) {
  Table[n & 63]++;
  __asm__ volatile("1: nop\n\t.pushsection noted, \"aw\"\n\t.globl noted_here\nnoted_here:\n\t.long 7\n\t.popsection");
}

// CHECK: :[[#@LINE+1]]:{{.*}}it has an assembly with jumps
APART static int jumps(int n) {
  Table[n & 63]++;
  __asm__ goto("testl %0, %0\n\tjz %l1\n\t.globl jumped\njumped:" : : "r"(n) : "cc" : none);
  return 1;
none:
  return 0;
}

// CHECK-NOT: an assembly in it defines
APART static void numbers(int n) {
  Table[n & 63]++;
  __asm__ volatile("1: decl %0\n\tjnz 1b\n.Lmine%=: nop\n\tjmp .Lmine_too%=\n.Lmine_too%=:" : "+r"(n) : : "cc");
  __asm__ volatile(".p2align 4\n\t.cfi_remember_state\n\t.cfi_restore_state\n\t{nop|nop}" : :);
}

extern const int __start_noted[], __stop_noted[];

// AGREE: {{[1-9][0-9]*}} accesses agree
int main(void) {
  label(10);
  behind_comment(1);
  symbol(2);
  macro(3);
  section(4);
  numbers(5);
  if (jumps(0) || !jumps(6))
    return 1;
  return !marker[0] || __stop_noted - __start_noted != 1 || *__start_noted != 7;
}
