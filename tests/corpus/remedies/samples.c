// Samples of three longs, each read whole: their values fit into one byte, two and four.
#include <stdio.h>

enum { SAMPLES = 40000, ROUNDS = 5 };
struct sample {
  long kind, size, time;
};
static struct sample samples[SAMPLES];

int main(void) {
  for (int i = 0; i < SAMPLES; i++)
    samples[i] = (struct sample){i % 7, i % 5000, i * 11L};
  long sum = 0;
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < SAMPLES; i++)
      sum += samples[i].kind * samples[i].size + samples[i].time;
  printf("%ld\n", sum);
  return 0;
}
