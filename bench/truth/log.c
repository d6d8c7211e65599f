// A log of lines is cut into fields; bytes are added up by name, and lines by hour.
#include "truth.h"

enum { BYTES = 8 << 20, NAMES = 1 << 16, HOURS = 24 };

struct totals {
  uint64_t by_name[NAMES];
  uint64_t by_hour[HOURS];
};

static APART size_t write_log(char *log, uint64_t *seed) {
  size_t at = 0;
  while (at + 64 < BYTES)
    at +=
        (size_t)sprintf(log + at, "%02u:%02u host%05u GET %u\n", kernel_random(seed) % HOURS,
                        kernel_random(seed) % 60, kernel_random(seed) % 50000, kernel_random(seed) % 100000);
  return at;
}

static const char *number(const char *at, uint32_t *value) {
  *value = 0;
  while (*at >= '0' && *at <= '9')
    *value = *value * 10 + (uint32_t)(*at++ - '0');
  return at;
}

static APART void sum_up(struct totals *totals, const char *log, size_t bytes) {
  const char *at = log;
  while (at < log + bytes) {
    uint32_t hour;
    uint32_t count;
    at = number(at, &hour);
    while (*at != ' ')
      at++;
    uint32_t hash = 0;
    for (at++; *at != ' '; at++)
      hash = hash * 31 + (uint8_t)*at;
    for (at++; *at != ' '; at++)
      ;
    at = number(at + 1, &count) + 1;
    totals->by_hour[hour]++;
    totals->by_name[hash % NAMES] += count;
  }
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 14;
  char *log = kernel_allocate(BYTES, 1);
  struct totals *totals = kernel_allocate(1, sizeof *totals);
  size_t bytes = write_log(log, &seed);
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    sum_up(totals, log, bytes);
  }
  printf("%llu %llu\n", (unsigned long long)totals->by_hour[3], (unsigned long long)totals->by_name[7]);
  free(totals);
  free(log);
}
