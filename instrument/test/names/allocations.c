// The type of fresh memory is that of what it is assigned to.
// RUN: %names-c -O2 -g %s 2>&1 | %FileCheck %s
// RUN: env MEMLODE_NAMES_FORGET=1 %names-c -O2 -g %s 2>&1 | %FileCheck %s

#include <stdlib.h>
struct node { struct node *next; int key; };
struct list { struct node *head; double *weights; };
void use(struct node *n);

// CHECK: local: allocations.c:[[#@LINE+2]]:{{[0-9]+}} alloc 0 n : node . - (
struct node *local(void) {
  struct node *n = malloc(sizeof *n);
  if (n) n->key = 1;
  return n;
}
// CHECK: member: allocations.c:[[#@LINE+1]]:{{[0-9]+}} alloc 0 l : double . weights (
void member(struct list *l, int n) { l->weights = malloc(n * sizeof(double)); }
// CHECK: result: allocations.c:[[#@LINE+1]]:{{[0-9]+}} alloc 0 - : node . - (
struct node *result(void) { return malloc(sizeof(struct node)); }
// CHECK: argument: allocations.c:[[#@LINE+1]]:{{[0-9]+}} alloc 0 - : node . - (
void argument(void) { use(calloc(4, sizeof(struct node))); }
// CHECK: chunk: allocations.c:[[#@LINE+1]]:{{[0-9]+}} alloc 0 - : - . - (partial)
void *chunk(size_t n) { return malloc(n); }
