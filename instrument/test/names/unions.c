// Union members are told apart by the kind and the use of the value; what stays open is listed.
// RUN: %names-c -O2 -g %s 2>&1 | %FileCheck %s

struct node { struct node *next; int key; };
union value { long i; double d; struct node *node; void (*call)(void); int half[2]; };
struct slot { int kind; union value v; };
union overlay { unsigned u; int i; };
struct word { union overlay w; };

// CHECK: real: unions.c:{{[0-9]+}}:{{[0-9]+}} read 8 s : slot . v.d (
double real(struct slot *s) { return s->v.d; }
// CHECK: whole: unions.c:{{[0-9]+}}:{{[0-9]+}} write 8 s : slot . v.i (
void whole(struct slot *s) { s->v.i = 1; }
// CHECK: follow: unions.c:{{[0-9]+}}:{{[0-9]+}} read 8 s : slot . v.node (
// CHECK: follow: unions.c:{{[0-9]+}}:{{[0-9]+}} read 4 s->v.node : node . key (
int follow(struct slot *s) { return s->v.node->key; }
// CHECK: invoke: unions.c:{{[0-9]+}}:{{[0-9]+}} read 8 s : slot . v.call (
void invoke(struct slot *s) { s->v.call(); }
// CHECK: put: unions.c:{{[0-9]+}}:{{[0-9]+}} write 8 s : slot . v.node (
void put(struct slot *s, struct node *n) { s->v.node = n; }
// CHECK: open: unions.c:{{[0-9]+}}:{{[0-9]+}} read 4 w : word . w.u|w.i (
int open(struct word *w) { return w->w.i; }
