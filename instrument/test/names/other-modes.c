// Whatever debug info there is, the pass copes; what can be said without any is said.
// RUN: %names-c -O2 %s 2>&1 | %FileCheck %s --check-prefix=NONE
// RUN: %names-c -O2 -g1 %s 2>&1 | %FileCheck %s --check-prefix=LINES
// RUN: %names-c -O2 -g -gsplit-dwarf %s 2>&1 | %FileCheck %s
// RUN: %names-c -O2 -g -fno-strict-aliasing %s 2>&1 | %FileCheck %s
// RUN: %names-c -O2 -g -gno-column-info %s 2>&1 | %FileCheck %s
// RUN: %names-c -O0 -g %s 2>&1 | %FileCheck %s
// RUN: %names-c -Og -g -fno-omit-frame-pointer %s 2>&1 | %FileCheck %s
// RUN: env MEMLODE_NAMES_FORGET=1 %names-c -O2 -g -fno-strict-aliasing %s 2>&1 | %FileCheck %s

struct node { struct node *next; double w; };

// Alias tags know a C structure's name only through its debug info.
// NONE: weight: - read 8 - : double . - (tbaa)
// LINES: weight: other-modes.c:[[#@LINE+2]]:{{[0-9]+}} read 8 - : double . - (tbaa)
// CHECK: weight: other-modes.c:[[#@LINE+1]]:{{[0-9]+}} read 8 n : node . w (
double weight(struct node *n) { return n->w; }
