#include "items.h"
#include <stdlib.h>
struct item *make(long n) {
  struct item *items = malloc(n * sizeof *items);
  for (long i = 0; i < n; i++)
    items[i].key = i;
  return items;
}
long sum(const struct item *items, long n) {
  long all = 0;
  for (long i = 0; i < n; i++)
    all += items[i * 7919 % n].key; // <-- hot
  return all;
}
