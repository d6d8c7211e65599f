// Twelve arrays that begin at the beginning of a page each, read side by side: more than a set has ways.
#include <stdio.h>

enum { ELEMENTS = 1 << 12, ROUNDS = 8 };
static _Alignas(4096) double a0[ELEMENTS], a1[ELEMENTS], a2[ELEMENTS], a3[ELEMENTS], a4[ELEMENTS],
    a5[ELEMENTS], a6[ELEMENTS], a7[ELEMENTS], a8[ELEMENTS], a9[ELEMENTS], a10[ELEMENTS], a11[ELEMENTS];

int main(void) {
  for (int i = 0; i < ELEMENTS; i++)
    a0[i] = a1[i] = a2[i] = a3[i] = a4[i] = a5[i] = a6[i] = a7[i] = a8[i] = a9[i] = a10[i] = a11[i] = i;
  double sum = 0;
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < ELEMENTS; i++)
      sum += a0[i] + a1[i] + a2[i] + a3[i] + a4[i] + a5[i] + a6[i] + a7[i] + a8[i] + a9[i] + a10[i] + a11[i];
  printf("%g\n", sum);
  return 0;
}
