// The same samples, as they should be: a search goes over the sources alone.
#include <stdio.h>

enum { SAMPLES = 60000, READS = 15 };

struct sample {
  long time;
  double value;
};

static struct sample samples[SAMPLES];
static long sources[SAMPLES];

int main(void) {
  for (int i = 0; i < SAMPLES; i++) {
    samples[i].time = i * 10L;
    samples[i].value = (double)(i * 10L % 97);
    sources[i] = i % 12;
  }
  double sum = 0;
  for (int read = 0; read < READS; read++)
    for (int i = 0; i < SAMPLES; i++)
      if (sources[i] == read)
        sum += samples[i].value + (double)(samples[i].time % 2);
  printf("%.0f\n", sum);
  return 0;
}
