// After inlining one pointer bears the variables of every frame it passed through. The one of the access's own frame
// names it, and a plain reference in a helper turns out to be the caller's member.
// RUN: %names-cxx -O2 -g %s 2>&1 | %FileCheck %s
// RUN: env MEMLODE_NAMES_FORGET=1 %names-cxx -O2 -g %s 2>&1 | %FileCheck %s

struct Item { long key; int count; Item *next; };
static int take(Item *inner) { return inner->count; }
// CHECK: _Z5outerP4Item: inlined.cpp:[[#@LINE-1]]:{{[0-9]+}} read 4 inner : Item . count (
// CHECK: _Z5outerP4Item: inlined.cpp:[[#@LINE+1]]:{{[0-9]+}} read 8 mine : Item . key (
long outer(Item *mine) { int n = take(mine); return mine->key + n; }

static void bump(int &value) { value += 2; }
// CHECK: _Z5countP4Item: inlined.cpp:[[#@LINE-1]]:{{[0-9]+}} read 4 {{.*}} : Item . count (
void count(Item *item) { bump(item->count); }

// On its way round the loop the pointer leads to something else than where it started: it is known by its own name.
struct Owner { long n; Item *first; };
static void append(Item **where, Item *item) {
  // CHECK-DAG: _Z6insertP5OwnerP4Item: inlined.cpp:[[#@LINE+2]]:{{[0-9]+}} read 8 o : Owner . first (
  // CHECK-DAG: _Z6insertP5OwnerP4Item: inlined.cpp:[[#@LINE+1]]:{{[0-9]+}} read 8 where : Item * . - (
  while (*where) { (*where)->count++; where = &(*where)->next; }
  *where = item;
}
void insert(Owner *o, Item *item) { append(&o->first, item); }
