// Substitution by tables of 256 KiB, which the second level holds, of text that streams by.
#include "truth.h"

enum { TABLES = 4, ENTRIES = 1 << 14, BYTES = 1 << 22 };

static APART uint32_t substitute(const uint32_t (*tables)[ENTRIES], const uint32_t *text, uint32_t *out) {
  uint32_t state = 1;
  for (size_t i = 0; i < BYTES / 4; i++) {
    uint32_t word = text[i] ^ state;
    state = tables[0][word % ENTRIES] ^ tables[1][(word >> 6) % ENTRIES] ^ tables[2][(word >> 12) % ENTRIES] ^
            tables[3][(word >> 18) % ENTRIES];
    out[i] = state;
  }
  return state;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 20;
  uint32_t (*tables)[ENTRIES] = kernel_allocate(TABLES, sizeof *tables);
  uint32_t *text = kernel_allocate(BYTES, 1);
  uint32_t *out = kernel_allocate(BYTES, 1);
  for (int table = 0; table < TABLES; table++)
    for (int i = 0; i < ENTRIES; i++)
      tables[table][i] = kernel_random(&seed);
  uint32_t sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    sum += substitute(tables, text, out);
  }
  printf("%u\n", sum);
}
