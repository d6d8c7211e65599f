// Accesses wider than what the source wrote: vectors, merged neighbours, loops that became memset.
// RUN: %names-c -O2 -g %s 2>&1 | %FileCheck %s

struct pair { long a, b; int c; };
struct holder { int n; struct pair *pairs; long *slots; };

// CHECK: sum: wide.c:{{[0-9]+}}:{{[0-9]+~?}} read 16 v : int . - (
int sum(const int *v, int n) {
  int s = 0;
  for (int i = 0; i < n; i++) s += v[i];
  return s;
}
// CHECK: clear: wide.c:{{[0-9]+}}:{{[0-9]+~?}} write 16 p : pair . a|b (
void clear(struct pair *p) { p->a = 0; p->b = 0; }
// CHECK: idiom: wide.c:{{[0-9]+}}:{{[0-9]+}} write 0 {{.*}} : long . - (
void idiom(struct holder *h) {
  for (int i = 0; i < h->n; i++) h->slots[i] = 0;
}
