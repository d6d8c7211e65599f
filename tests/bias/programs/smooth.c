// Smooths one static array into another, over and over. The arrays and what lies between them are in objects
// of their own (array.c), so that the order of the link alone decides whether a load agrees in its low 12
// address bits with a store just before it.
#include <stdio.h>
#include <stdlib.h>

#define COUNT 1000

extern float samples[], smoothed[];

__attribute__((noinline)) static void smooth(const float *from, float *to) {
  for (int i = 1; i < COUNT - 1; i++)
    to[i] = 0.25f * from[i - 1] + 0.5f * from[i] + 0.25f * from[i + 1];
}

int main(int argc, char **argv) {
  long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
  for (int i = 0; i < COUNT; i++)
    samples[i] = (float)(i % 17);
  for (long round = 0; round < rounds; round++) {
    smooth(samples, smoothed);
    samples[round % COUNT] += smoothed[round % 7] * 1e-9f;
  }
  printf("%.3f\n", smoothed[COUNT / 2]);
  return 0;
}
