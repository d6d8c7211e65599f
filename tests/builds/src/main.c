#include "items.h"
#include <stdio.h>
int main(void) {
  long n = 100000, all = 0;
  struct item *items = make(n);
  for (int pass = 0; pass < 3; pass++)
    all += sum(items, n);
  printf("%ld\n", all);
  return 0;
}
