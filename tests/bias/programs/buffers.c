// Smooths one large block of the heap into another of the same size, over and over: glibc puts both at the
// same place of a page.
#include <stdio.h>
#include <stdlib.h>

#define COUNT 40000

__attribute__((noinline)) static float *numbers(void) {
  float *block = malloc(COUNT * sizeof(float));
  if (block == NULL)
    abort();
  for (int i = 0; i < COUNT; i++)
    block[i] = (float)(i % 17);
  return block;
}

__attribute__((noinline)) static void smooth(const float *from, float *to) {
  for (int i = 2; i < COUNT - 2; i++)
    to[i] = 0.1F * from[i - 2] + 0.25F * from[i - 1] + 0.5F * from[i] + 0.1F * from[i + 2];
}

int main(int argc, char **argv) {
  long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
  float *from = numbers();
  float *to = numbers();
  for (long round = 0; round < rounds; round++) {
    smooth(from, to);
    from[round % COUNT] += to[round % 7] * 1e-9F;
  }
  printf("%.3f\n", to[COUNT / 2]);
  free(from);
  free(to);
  return 0;
}
