// A search tree of records. The disease: a search reads a key and a child of each node on its way, and the
// record that it does not read lies between them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 30000, SEARCHES = 120000 };

struct node {
  unsigned key;
  char record[104];
  struct node *child[2];
};

static unsigned seed = 11;

static unsigned number(void) {
  seed = seed * 1664525 + 1013904223;
  return seed >> 8;
}

static struct node *make(unsigned key) {
  struct node *node = malloc(sizeof *node);
  if (!node)
    abort();
  node->key = key;
  node->child[0] = node->child[1] = NULL;
  memset(node->record, (int)key, sizeof node->record);
  return node;
}

int main(void) {
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
    while (node && node->key != key) { // <-- hot
      sum += node->key & 1;
      node = node->child[key > node->key];
    }
    if (node)
      sum += node->record[i % 104];
  }
  printf("%ld\n", sum);
  return 0;
}
