// A signal is smoothed from one buffer into another. Blocks of this size are mapped, so both begin at the
// same place of a page: each value that is read has the low address bits of one that was written just before.
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 1 << 17, ROUNDS = 10 };

__attribute__((noinline)) static void smooth(const double *restrict in, double *restrict out) {
  for (int i = 1; i < SAMPLES - 1; i++)
    out[i] = 0.25 * in[i - 1] + 0.5 * in[i] + 0.25 * in[i + 1];
}

int main(void) {
  double *in = malloc(SAMPLES * sizeof *in);
  double *out = malloc(SAMPLES * sizeof *out);
  if (!in || !out)
    abort();
  for (int i = 0; i < SAMPLES; i++)
    in[i] = i % 71;
  for (int round = 0; round < ROUNDS; round++) {
    in[round + 1] += 1;
    smooth(in, out);
  }
  printf("%.3f\n", out[5] + out[SAMPLES / 2]);
  free(out);
  free(in);
  return 0;
}
