// A bit-field is read and written through a storage unit that it may share.
// RUN: %names-c -O2 -g %s 2>&1 | %FileCheck %s
// RUN: env MEMLODE_NAMES_FORGET=1 %names-c -O2 -g %s 2>&1 | %FileCheck %s --check-prefix=WALK

struct flags { int n; unsigned small : 3, middle : 7, big : 20; };

// CHECK: get: bitfields.c:{{[0-9]+}}:{{[0-9]+}} read 4 f : flags . middle (
// WALK: get: bitfields.c:{{[0-9]+}}:{{[0-9]+}} read 4 f : flags . middle (
unsigned get(struct flags *f) { return f->middle; }

// CHECK: set: bitfields.c:{{[0-9]+}}:{{[0-9]+}} read 4 f : flags . big (
// CHECK: set: bitfields.c:{{[0-9]+}}:{{[0-9]+}} write 4 f : flags . big (
void set(struct flags *f, unsigned v) { f->big = v; }

// Both fields in one access.
// WALK: both: bitfields.c:{{[0-9]+}}:{{[0-9]+~?}} read 4 f : flags . small|middle|big (
unsigned both(struct flags *f) { return f->small + f->middle * f->big; }
