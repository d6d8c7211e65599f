// Large memory is written once by set-up code; a small part of it is then asked again and again.
#include "truth.h"

enum { RECORDS = 1 << 20, ASKED = 1 << 17 };

struct record {
  uint64_t key;
  uint64_t next;
  uint64_t values[6];
};

static APART void set_up(struct record *records, uint64_t *seed) {
  for (uint32_t i = 0; i < RECORDS; i++) {
    records[i].key = i;
    for (int value = 0; value < 6; value++)
      records[i].values[value] = i;
  }
  uint32_t *order = truth_order(ASKED, 1, seed);
  for (uint32_t i = 0; i < ASKED; i++)
    records[order[i]].next = order[(i + 1) % ASKED];
  free(order);
}

static APART uint64_t ask(const struct record *records) {
  uint64_t sum = 0;
  uint64_t at = 0;
  for (uint32_t i = 0; i < ASKED; i++) {
    sum += records[at].key;
    at = records[at].next;
  }
  return sum;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 21;
  struct record *records = kernel_allocate(RECORDS, sizeof *records);
  set_up(records, &seed);
  uint64_t sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    sum += ask(records);
  }
  printf("%llu\n", (unsigned long long)sum);
}
