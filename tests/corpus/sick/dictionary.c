// A dictionary is searched by words, which a function compares by pointers to characters: of each
// entry the word is read, and of the one that is found, little else. The long text beside the word
// fills the cache's sets.
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 6000, LOOKUPS = 40000 };
struct entry {
  char word[16];
  int value;
  char text[332];
};
static struct entry *entries;

static int compare(const char *a, const char *b) {
  for (; *a && *a == *b; a++, b++) {
  }
  return *(const unsigned char *)a - *(const unsigned char *)b;
}

static void spell(char *word, int number) {
  for (int at = 7; at >= 0; at--, number /= 10)
    word[at] = (char)('0' + number % 10);
  word[8] = 0;
}

int main(void) {
  entries = calloc(ENTRIES, sizeof *entries);
  for (int i = 0; i < ENTRIES; i++) {
    spell(entries[i].word, i * 3);
    entries[i].value = i;
    for (int k = 0; k < 332; k += 60)
      entries[i].text[k] = 'x';
  }
  unsigned long seed = 88172645463325252UL, sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    char word[16];
    spell(word, (int)(seed % (3 * ENTRIES)));
    for (int low = 0, high = ENTRIES; low < high;) {
      const int at = (low + high) / 2, order = compare(entries[at].word, word);
      if (order == 0) {
        sum += (unsigned)entries[at].value + (unsigned char)entries[at].text[60];
        break;
      }
      if (order < 0)
        low = at + 1;
      else
        high = at;
    }
  }
  printf("%lu\n", sum);
  return 0;
}
