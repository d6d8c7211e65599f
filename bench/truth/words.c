// Words counted in a trie whose nodes come one after the other as words do.
#include "truth.h"

enum { LETTERS = 26, NODES = 1 << 20, WORDS = 1 << 17, LENGTH = 8 };

struct node {
  uint32_t child[LETTERS];
  uint32_t count;
};

static APART uint32_t add(struct node *nodes, uint32_t *used, const char *word) {
  uint32_t at = 0;
  for (; *word; word++) {
    uint32_t *child = &nodes[at].child[*word - 'a'];
    if (!*child)
      *child = ++*used;
    at = *child;
  }
  return ++nodes[at].count;
}

static APART uint64_t total(const struct node *nodes, uint32_t used) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i <= used; i++)
    sum += nodes[i].count;
  return sum;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 10;
  struct node *nodes = kernel_allocate(NODES, sizeof *nodes);
  char (*words)[LENGTH + 1] = kernel_allocate(WORDS, sizeof *words);
  for (uint32_t i = 0; i < WORDS; i++)
    for (int letter = 0; letter < LENGTH; letter++)
      words[i][letter] = (char)('a' + kernel_random(&seed) % (letter < 4 ? LETTERS : 3));
  uint32_t used = 0;
  uint64_t sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    for (uint32_t i = 0; i < WORDS; i++)
      sum += add(nodes, &used, words[kernel_random(&seed) % WORDS]);
    sum += total(nodes, used);
  }
  printf("%llu %u\n", (unsigned long long)sum, used);
}
