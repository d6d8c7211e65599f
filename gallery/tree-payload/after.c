// The same tree. The cure: records lie in an array beside the nodes, and a node is half a line.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 30000, SEARCHES = 120000 };

struct record {
  char bytes[104];
};

struct node {
  unsigned key;
  struct node *child[2];
  int record;
};

static struct record *records;

static unsigned seed = 11;

static unsigned number(void) {
  seed = seed * 1664525 + 1013904223;
  return seed >> 8;
}

static struct node *make(unsigned key) {
  struct node *node = malloc(sizeof *node);
  if (!node)
    abort();
  static int made;
  node->record = made++;
  node->key = key;
  node->child[0] = node->child[1] = NULL;
  memset(records[node->record].bytes, (int)key, sizeof records[node->record].bytes);
  return node;
}

int main(void) {
  records = malloc(NODES * sizeof *records);
  if (!records)
    abort();
  struct node *root = make(1u << 23);
  for (int i = 1; i < NODES; i++) {
    unsigned key = number();
    struct node **at = &root;
    while (*at)
      at = &(*at)->child[key > (*at)->key];
    *at = make(key);
  }
  long sum = 0;
  for (int i = 0; i < SEARCHES; i++) {
    unsigned key = number();
    struct node *node = root;
    while (node && node->key != key) { // <-- cured
      sum += node->key & 1;
      node = node->child[key > node->key];
    }
    if (node)
      sum += records[node->record].bytes[i % 104];
  }
  printf("%ld\n", sum);
  return 0;
}
