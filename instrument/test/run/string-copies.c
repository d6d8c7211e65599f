// strdup and strndup make objects of the right size and return what the library's do.
// RUN: %memlode-c -O2 -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// RUN: env MEMLODE_MODE=both %memlode-c -O2 -c %s -o %t.both.o
// RUN: %link %t.both.o -o %t.both && %t.both

#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static char *whole(const char *s) { return strdup(s); }
__attribute__((noinline)) static char *part(const char *s, size_t n) { return strndup(s, n); }

// CHECK: enter whole
// CHECK-NEXT: load 6 whole
// CHECK-NEXT: stamp
// CHECK-NEXT: alloc some 6 whole
// CHECK-NEXT: store 6 whole
// CHECK: enter part
// CHECK-NEXT: load 3 part
// CHECK-NEXT: stamp
// CHECK-NEXT: alloc some 4 part
// CHECK-NEXT: store 4 part
// CHECK: alloc some 6 part
int main(void) {
  char *a = whole("hello"), *b = part("hello", 3), *c = part("hello", 9);
  int wrong = strcmp(a, "hello") || strcmp(b, "hel") || strcmp(c, "hello");
  free(a);
  free(b);
  free(c);
  return wrong;
}
