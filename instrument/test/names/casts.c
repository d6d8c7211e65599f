// A cast pointer keeps its variable; the type is that of the access.
// RUN: %names-c -O2 -g %s 2>&1 | %FileCheck %s
// RUN: env MEMLODE_NAMES_FORGET=1 %names-c -O2 -g %s 2>&1 | %FileCheck %s

struct base { int tag; };
struct derived { struct base base; long count; struct derived *peer; };

// CHECK: from_base: casts.c:{{[0-9]+}}:{{[0-9]+}} read 8 b : derived . count (
long from_base(struct base *b) { return ((struct derived *)b)->count; }
// CHECK: from_void: casts.c:{{[0-9]+}}:{{[0-9]+}} write 8 v : derived . peer (
void from_void(void *v) { ((struct derived *)v)->peer = 0; }
// CHECK: onward: casts.c:{{[0-9]+}}:{{[0-9]+}} read 8 v : derived . peer (
// CHECK: onward: casts.c:{{[0-9]+}}:{{[0-9]+}} read 8 v->peer : derived . count (
long onward(void *v) { return ((struct derived *)v)->peer->count; }
// A header in front of the object is not the end of another object.
// CHECK: header: casts.c:{{[0-9]+}}:{{[0-9]+}} read 8 d : long . - (
long header(struct derived *d) { return ((long *)d)[-1]; }
// CHECK: buffer: casts.c:{{[0-9]+}}:{{[0-9]+}} read 4 bytes : int . - (
int buffer(char *bytes) { return *(int *)(bytes + 8); }
