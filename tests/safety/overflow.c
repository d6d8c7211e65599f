/* For AddressSanitizer: right as long as it is given no argument. */
#include <stdlib.h>
#include <string.h>

#include "objects.h"

int squares[100];

int main(int argc, char **argv) {
  (void)argv;
  OBJECT(squares);
  int *copy = malloc(sizeof squares);
  for (int i = 0; i < 100; i++)
    squares[i] = i * i;
  memcpy(copy, squares, sizeof squares);
  long sum = 0;
  for (int i = 0; i < 99 + argc; i++)
    sum += copy[i];
  printf("%ld\n", sum);
  free(copy);
  return 0;
}
