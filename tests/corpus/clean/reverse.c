// Reverses words of a text in place.
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 400000 };

static void reverse(char *from, char *to) {
  while (from < to) {
    char swapped = *from;
    *from++ = *to;
    *to-- = swapped;
  }
}

int main(void) {
  char *text = malloc(BYTES + 1);
  if (!text)
    abort();
  unsigned seed = 1;
  for (int i = 0; i < BYTES; i++) {
    unsigned number = (seed = seed * 1103515245 + 12345) >> 16;
    text[i] = number % 6 ? (char)('a' + number % 26) : ' ';
  }
  text[BYTES] = ' ';
  for (int round = 0; round < 3; round++)
    for (int start = 0, i = 0; i <= BYTES; i++)
      if (text[i] == ' ') {
        reverse(text + start, text + i - 1);
        start = i + 1;
      }
  printf("%.20s\n", text);
  free(text);
  return 0;
}
