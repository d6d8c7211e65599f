// Primes, a bit for each odd number.
#include <stdio.h>
#include <stdlib.h>

enum { LIMIT = 2000000 };

int main(void) {
  unsigned char *is_composite = calloc(LIMIT / 16 + 1, 1);
  if (!is_composite)
    abort();
  int primes = 1;
  for (long n = 3; n < LIMIT; n += 2) {
    if (is_composite[n >> 4] >> (n >> 1 & 7) & 1)
      continue;
    primes++;
    for (long m = n * n; m < LIMIT; m += 2 * n)
      is_composite[m >> 4] |= (unsigned char)(1 << (m >> 1 & 7));
  }
  printf("%d\n", primes);
  free(is_composite);
  return 0;
}
