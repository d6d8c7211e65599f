// Both sides of a copy have a name.
// RUN: %names-c -O2 -g %s 2>&1 | %FileCheck %s

#include <string.h>
struct big { int v[40]; };
struct outer { int n; struct big big; char text[64]; };

// CHECK: whole: copies.c:{{[0-9]+}}:{{[0-9]+}} write 160 a : big . - (
// CHECK: whole: copies.c:{{[0-9]+}}:{{[0-9]+}} read 160 b : big . - (
void whole(struct big *a, const struct big *b) { *a = *b; }
// CHECK: member: copies.c:{{[0-9]+}}:{{[0-9]+}} write 160 o : outer . big (
// CHECK: member: copies.c:{{[0-9]+}}:{{[0-9]+}} read 160 b : big . - (
void member(struct outer *o, const struct big *b) { o->big = *b; }
// CHECK: bytes: copies.c:{{[0-9]+}}:{{[0-9]+}} write 0 o : outer . text[] (
// CHECK: bytes: copies.c:{{[0-9]+}}:{{[0-9]+}} read 0 s : char . - (
void bytes(struct outer *o, const char *s, size_t n) { memcpy(o->text, s, n); }
