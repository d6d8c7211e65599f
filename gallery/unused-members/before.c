// Samples of a meter. The disease: members that nothing reads are written with each, and fetched with the
// others.
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 60000, READS = 15 };

struct sample {
  long time;
  double value;
  long source;
  long quality;
  long checksum;
  long spare[3];
};

static struct sample *samples;

static void put(int i, long time) {
  samples[i].time = time;
  samples[i].value = (double)(time % 97);
  samples[i].source = i % 12;
  samples[i].quality = 3;
  samples[i].checksum = time ^ i;
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
      if (samples[i].source == read) // <-- hot
        sum += samples[i].value + (double)(samples[i].time % 2);
  printf("%.0f\n", sum);
  return 0;
}
