// The same buffers, of which the one that is read begins a quarter of a kilobyte later in its page.
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 1 << 17, ROUNDS = 10, LATER = 32 };

__attribute__((noinline)) static void smooth(const double *restrict in, double *restrict out) {
  for (int i = 1; i < SAMPLES - 1; i++)
    out[i] = 0.25 * in[i - 1] + 0.5 * in[i] + 0.25 * in[i + 1];
}

int main(void) {
  double *block = malloc((SAMPLES + LATER) * sizeof *block);
  double *out = malloc(SAMPLES * sizeof *out);
  double *in = block + LATER;
  if (!block || !out)
    abort();
  for (int i = 0; i < SAMPLES; i++)
    in[i] = i % 71;
  for (int round = 0; round < ROUNDS; round++) {
    in[round + 1] += 1;
    smooth(in, out);
  }
  printf("%.3f\n", out[5] + out[SAMPLES / 2]);
  free(out);
  free(block);
  return 0;
}
