// Optimisation merges the two loads of a tree walk into one of either member.
// RUN: %names-c -O2 -g %s 2>&1 | %FileCheck %s

struct tree { int key; struct tree *left, *right; };

// CHECK-DAG: find: choices.c:[[#@LINE+3]]:{{[0-9]+}} read 4 t : tree . key (
// CHECK-DAG: find: choices.c:[[#@LINE+2]]:{{[0-9]+~?}} read 8 t : tree . left|right (
struct tree *find(struct tree *t, int k) {
  while (t && t->key != k) t = k < t->key ? t->left : t->right;
  return t;
}
