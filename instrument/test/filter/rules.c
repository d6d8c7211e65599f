// Rules are read top to bottom and the last that matches decides; a remark names it.
// RUN: env MEMLODE_FILTER=%S/Inputs/rules.filter %memlode-c -O1 -c %s -o %t.o -Rpass-missed=memlode 2>&1 \
// RUN:   | %FileCheck %s --implicit-check-not=remark:

#include <string.h>
struct hot { long a; };
struct cold { long a; };

// CHECK-DAG: rules.c:[[@LINE+1]]:{{.*}}: left out by the rule at {{.*}}rules.filter:5
long one(struct hot *h, struct cold *c) { h->a = 1; return c->a; }

// CHECK-DAG: rules.c:[[@LINE+1]]:{{.*}}: left out by the rule at {{.*}}rules.filter:3
long two(struct hot *h, struct cold *c) { c->a = 1; return h->a; }

long small(long *p) { return *p; }

// CHECK-DAG: rules.c:[[@LINE+1]]:{{.*}}: left out by the rule at {{.*}}rules.filter:3
long notsmall(long *p) { return *p; }

// CHECK-DAG: rules.c:[[@LINE+3]]:{{.*}}: left out by the rule at {{.*}}rules.filter:9
// CHECK-DAG: rules.c:[[@LINE+3]]:{{.*}}: left out by the rule at {{.*}}rules.filter:9
long all(_Atomic long *p, char *q, long n) {
  ++*p;
  memset(q, 0, n);
  return 0;
}
