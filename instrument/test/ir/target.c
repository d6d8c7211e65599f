// Only targets whose addresses fit a stream.
// RUN: not %memlode-c -m32 -c %s -o %t.o 2>&1 | %FileCheck %s
// RUN: not %memlode-c -mx32 -c %s -o %t.o 2>&1 | %FileCheck %s
// CHECK: error: memlode: cannot record a program for {{.*}}; expected 64-bit x86 or Arm with ELF files
// RUN: %memlode-c -O2 --target=aarch64-linux-gnu -S %s -o - | %FileCheck %s --check-prefix=ARM
// ARM-LABEL: clear:
// ARM: adrp{{[[:space:]]+}}{{x[0-9]+}}, :gottprel:__memlode_cursor
// ARM: tbz{{[[:space:]]+}}{{[wx][0-9]+}}, #16
// ARM: stp{{[[:space:]]+}}{{x[0-9]+}}, {{x[0-9]+}}, [{{x[0-9]+}}], #16
void clear(int *p) {
  for (int i = 0; i < 100; i++)
    p[i * i] = p[i] & 7;
}
