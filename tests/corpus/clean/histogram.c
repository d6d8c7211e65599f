// Counts bytes into a table that stays in the first level.
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 1000000 };
static unsigned counts[256];

int main(void) {
  unsigned char *text = malloc(BYTES);
  if (!text)
    abort();
  unsigned seed = 1;
  for (int i = 0; i < BYTES; i++)
    text[i] = (unsigned char)((seed = seed * 1103515245 + 12345) >> 20);
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < BYTES; i++)
      counts[text[i]]++;
  printf("%u %u\n", counts[0], counts[255]);
  free(text);
  return 0;
}
