// A path that begins with / is the whole path; of another, leading directories may be missing.
// RUN: split-file-22 %s %t && mkdir -p %t/theirs/deep && mv %t/a.h %t/theirs/deep/a.h
// RUN: echo "exclude file=deep/a.h" > %t.rules && env MEMLODE_FILTER=%t.rules %memlode-c -O1 -I%t/theirs -c \
// RUN:   %t/a.c -o %t.o -Rpass-missed=memlode 2>&1 | %FileCheck %s --implicit-check-not=remark:
// RUN: echo "exclude file=theirs/*" > %t.rules && env MEMLODE_FILTER=%t.rules %memlode-c -O1 -I%t/theirs -c \
// RUN:   %t/a.c -o %t.o -Rpass-missed=memlode 2>&1 | %FileCheck %s --implicit-check-not=remark:
// RUN: echo "exclude file=%t/theirs/deep/a.h" > %t.rules && env MEMLODE_FILTER=%t.rules %memlode-c -O1 -I%t/theirs -c \
// RUN:   %t/a.c -o %t.o -Rpass-missed=memlode 2>&1 | %FileCheck %s --implicit-check-not=remark:
// RUN: echo "exclude file=eep/a.h" > %t.rules && echo "exclude file=/deep/a.h" >> %t.rules
// RUN: env MEMLODE_FILTER=%t.rules %memlode-c -O1 -I%t/theirs -c %t/a.c -o %t.o -Rpass-missed=memlode 2>&1 \
// RUN:   | %FileCheck %s --allow-empty --check-prefix=NONE

// CHECK: a.h:1:{{.*}} left out by the rule
// NONE-NOT: remark:

//--- a.h
static inline long get(long *p) { return *p; }
//--- a.c
#include "deep/a.h"
long twice(long *p, long *q) { *q = 1; return get(p); }
