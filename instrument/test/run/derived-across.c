// Addresses derived from other segments: through branches, loops, recursion, jumps back, and where calls forbid it.
// RUN: env MEMLODE_MODE=both %memlode-c -O0 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s
// RUN: env MEMLODE_MODE=both %memlode-c -O1 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s
// RUN: env MEMLODE_MODE=both %memlode-c -O2 -fno-inline -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s
// RUN: env MEMLODE_MODE=both %memlode-c -O3 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s

#include <setjmp.h>
#include <stdio.h>

struct node {
  struct node *left, *right;
  long key, visits, depth;
};

static struct node nodes[64];
static volatile int opaque;
static jmp_buf back;

/* The same segments again in inner frames, with other words, before the outer frame goes on. */
static long walk(struct node *n, int depth) {
  if (!n)
    return 0;
  n->visits++;
  if (depth & 1)
    n->depth += depth;
  long sum = n->key;
  if (opaque != depth)
    sum += walk(n->left, depth + 1);
  n->visits += sum & 3;
  if (n->key & 2)
    n->depth++;
  return sum + walk(n->right, depth + 1) + n->visits;
}

static long find(struct node *n, long key) {
  long steps = 0;
  while (n && n->key != key) {
    n->visits += 2;
    if (n->key & 4)
      n->depth--;
    else if (n->visits > 100)
      n->visits = 0;
    steps += n->depth & 1;
    n = key < n->key ? n->left : n->right;
  }
  return steps;
}

static long jumps(struct node *n, int rounds) {
  long sum = 0;
again:
  n->visits ^= rounds;
  switch (rounds & 7) {
  case 0:
    n->key += 1;
    break;
  case 1:
    n->depth += n->key;
    goto out;
  case 5:
    n = &nodes[(n - nodes + 7) & 63];
    goto out;
  default:
    sum += n->key;
  }
  n->visits += sum;
out:
  sum += n->visits + n->depth;
  if (--rounds > 0)
    goto again;
  return sum;
}

static void leave(struct node *n, int how) {
  n->visits++;
  if (how)
    longjmp(back, how);
  n->depth++;
}

static long returns_twice(struct node *n) {
  volatile int round = 0;
  n->key++;
  setjmp(back);
  n->visits++;
  n->depth += round;
  if (round++ < 3)
    leave(n, round);
  n->key--;
  return n->visits;
}

static long grid(long (*cells)[9], int n) {
  long sum = 0;
  for (int i = 1; i < n - 1; i++) {
    cells[i][0] += i;
    for (int j = 1; j < 8; j++) {
      long middle = cells[i][j];
      if (middle & 1)
        cells[i][j] = cells[i - 1][j] + cells[i + 1][j];
      else if (middle & 2)
        cells[i][j - 1] += cells[i][j + 1];
      cells[i][0] ^= middle;
      sum += cells[i][j];
    }
    cells[i][8] = sum;
  }
  return sum;
}

int main(void) {
  for (int i = 0; i < 64; i++) {
    nodes[i].key = (i * 37) & 63;
    nodes[i].left = 2 * i + 1 < 64 ? &nodes[2 * i + 1] : NULL;
    nodes[i].right = 2 * i + 2 < 64 ? &nodes[2 * i + 2] : NULL;
  }
  opaque = 3;
  long sum = walk(nodes, 0);
  for (long key = 0; key < 64; key++)
    sum += find(nodes, key);
  sum += jumps(nodes, 200);
  sum += returns_twice(&nodes[5]);
  static long cells[20][9];
  for (int i = 0; i < 180; i++)
    cells[i / 9][i % 9] = i * 7;
  for (int round = 0; round < 30; round++)
    sum += grid(cells, 20);
  printf("%ld\n", sum);
  return 0;
}

// CHECK: {{-?[0-9]+}}
// CHECK: {{[1-9][0-9]*}} accesses agree
