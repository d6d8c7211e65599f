// The same samples. The cure: what nobody reads is not there.
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 60000, READS = 15 };

struct sample {
  long time;
  double value;
  long source;
};

static struct sample *samples;

static void put(int i, long time) {
  samples[i].time = time;
  samples[i].value = (double)(time % 97);
  samples[i].source = i % 12;
}

int main(void) {
  samples = malloc(SAMPLES * sizeof *samples);
  if (!samples)
    abort();
  for (int i = 0; i < SAMPLES; i++)
    put(i, i * 10L);
  double sum = 0;
  for (int read = 0; read < READS; read++)
    for (int i = 0; i < SAMPLES; i++)
      if (samples[i].source == read) // <-- cured
        sum += samples[i].value + (double)(samples[i].time % 2);
  printf("%.0f\n", sum);
  return 0;
}
