// What functions of libc look at is recorded where they are called, with the end of a string as they find it.
// RUN: %memlode-c -O1 -fno-builtin -fno-inline -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// RUN: env MEMLODE_MODE=both %memlode-c -O0 -c %s -o %t.both.o
// RUN: %link %t.both.o -o %t.both && %t.both
// RUN: env MEMLODE_MODE=both %memlode-c -O2 -c %s -o %t.both.o
// RUN: %link %t.both.o -o %t.both && %t.both

#define _GNU_SOURCE
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

char to[100];
char abc[] = "abcabc", abd[] = "abdx", unterminated[4] = {'w', 'x', 'y', 'z'};

// CHECK: enter searches
__attribute__((noinline)) static long searches(void) {
  long n = 0;
  // CHECK: load 7 searches:[[#@LINE+1]]
  n += (long)strlen(abc);
  // CHECK: load 4 searches:[[#@LINE+1]]
  n += (long)strnlen(unterminated, 4);
  // CHECK: load 3 searches:[[#@LINE+1]]
  n += strchr(abc, 'c') - abc;
  // CHECK: load 7 searches:[[#@LINE+1]]
  n += strchr(abc, 'z') == NULL;
  // CHECK: load 7 searches:[[#@LINE+1]]
  n += strrchr(abc, 'a') - abc;
  // CHECK: load 2 searches:[[#@LINE+1]]
  n += (char *)memchr(unterminated, 'x', 4) - unterminated;
  // CHECK: load 4 searches:[[#@LINE+1]]
  n += memchr(unterminated, '?', 4) == NULL;
  // CHECK: load 2 searches:[[#@LINE+1]]
  n += (char *)memrchr(unterminated, 'y', 4) - unterminated;
  // CHECK: load 3 searches:[[#@LINE+2]]
  // CHECK-NEXT: load 3 searches:[[#@LINE+1]]
  n += (long)strspn(abc, "ba");
  // CHECK: load 3 searches:[[#@LINE+2]]
  // CHECK-NEXT: load 4 searches:[[#@LINE+1]]
  n += strstr(abc + 1, "ab") - abc;
  char parts[] = "a,b", *at = parts;
  // CHECK: load 2 searches:[[#@LINE+2]]
  // CHECK-NEXT: load 2 searches:[[#@LINE+1]]
  n += strsep(&at, ",") - parts;
  return n;
}

// CHECK: enter comparisons
__attribute__((noinline)) static int comparisons(size_t n) {
  // CHECK: load 3 comparisons:[[#@LINE+2]]
  // CHECK-NEXT: load 3 comparisons:[[#@LINE+1]]
  int r = strcmp(abc, abd) < 0;
  // CHECK: load 2 comparisons:[[#@LINE+2]]
  // CHECK-NEXT: load 2 comparisons:[[#@LINE+1]]
  r += strncmp(abc, abd, 2) == 0;
  // CHECK: load 7 comparisons:[[#@LINE+2]]
  // CHECK-NEXT: load 7 comparisons:[[#@LINE+1]]
  r += strcasecmp(abc, "ABCABC") == 0;
  // CHECK: load 4 comparisons:[[#@LINE+2]]
  // CHECK-NEXT: load 4 comparisons:[[#@LINE+1]]
  r += memcmp(abc, unterminated, n) < 0;
  return r;
}

// CHECK: enter copies
__attribute__((noinline)) static char *copies(void) {
  // CHECK: load 5 copies:[[#@LINE+2]]
  // CHECK-NEXT: store 5 copies:[[#@LINE+1]]
  strcpy(to, abd);
  // CHECK: load 5 copies:[[#@LINE+3]]
  // CHECK-NEXT: load 7 copies:[[#@LINE+2]]
  // CHECK-NEXT: store 7 copies:[[#@LINE+1]]
  strcat(to, abc);
  // CHECK: load 11 copies:[[#@LINE+3]]
  // CHECK-NEXT: load 4 copies:[[#@LINE+2]]
  // CHECK-NEXT: store 5 copies:[[#@LINE+1]]
  strncat(to, unterminated, 4);
  // CHECK: load 4 copies:[[#@LINE+2]]
  // CHECK-NEXT: store 4 copies:[[#@LINE+1]]
  strncpy(to, unterminated, 4);
  // CHECK: load 5 copies:[[#@LINE+2]]
  // CHECK-NEXT: store 20 copies:[[#@LINE+1]]
  return strncpy(to, abd, 20);
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

// CHECK: enter sorts
__attribute__((noinline)) static int *sorts(int *p, size_t n) {
  const int three = 3;
  // CHECK: load 16 sorts:[[#@LINE+2]]
  // CHECK-NEXT: store 16 sorts:[[#@LINE+1]]
  qsort(p, n, sizeof *p, compare);
  // CHECK: enter compare
  // CHECK: load 4 sorts:[[#@LINE+1]]
  return bsearch(&three, p, n, sizeof *p, compare);
}

int main(void) {
  int numbers[] = {4, 3, 2, 1};
  return !(searches() == 6 + 4 + 2 + 1 + 3 + 1 + 1 + 2 + 2 + 3 && comparisons(4) == 4 && copies() == to &&
           sorts(numbers, 4) == numbers + 2);
}
