// A function's name is matched as qualified in the source, mangled or demangled, and stays with its accesses
// when they are inlined elsewhere.
// RUN: echo 'exclude function=list::*::head' > %t.filter
// RUN: env MEMLODE_FILTER=%t.filter %memlode-cxx -O2 -c %s -o %t.o -Rpass-missed=memlode 2>&1 \
// RUN:   | %FileCheck %s --implicit-check-not=remark:
// RUN: echo 'exclude function=_ZNK4list4node4headEv' > %t.filter
// RUN: env MEMLODE_FILTER=%t.filter %memlode-cxx -O2 -c %s -o %t.o -Rpass-missed=memlode 2>&1 \
// RUN:   | %FileCheck %s --implicit-check-not=remark:
// RUN: echo 'exclude function="list::node::head() const"' > %t.filter
// RUN: env MEMLODE_FILTER=%t.filter %memlode-cxx -O2 -c %s -o %t.o -Rpass-missed=memlode 2>&1 \
// RUN:   | %FileCheck %s --implicit-check-not=remark:
// RUN: echo 'exclude function=caller*' > %t.filter
// RUN: env MEMLODE_FILTER=%t.filter %memlode-cxx -O2 -c %s -o %t.o -Rpass-missed=memlode 2>&1 \
// RUN:   | %FileCheck %s --check-prefix=OUTER --implicit-check-not=remark:

namespace list {
struct node {
  int *first;
  // CHECK: inlined.cpp:[[@LINE+1]]:{{.*}} left out by the rule
  int *head() const { return first; }
};
}
int caller(list::node *n) {
  // OUTER: inlined.cpp:[[@LINE+1]]:{{.*}} left out by the rule
  return *n->head();
}
