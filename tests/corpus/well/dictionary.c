// The dictionary with its texts in an array of their own.
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 6000, LOOKUPS = 40000 };
struct entry {
  char word[16];
  int value;
};
struct text {
  char text[332];
};
static struct entry *entries;
static struct text *texts;

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
  texts = calloc(ENTRIES, sizeof *texts);
  for (int i = 0; i < ENTRIES; i++) {
    spell(entries[i].word, i * 3);
    entries[i].value = i;
    for (int k = 0; k < 332; k += 60)
      texts[i].text[k] = 'x';
  }
  unsigned long seed = 88172645463325252UL, sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    char word[16];
    spell(word, (int)(seed % (3 * ENTRIES)));
    for (int low = 0, high = ENTRIES; low < high;) {
      const int at = (low + high) / 2, order = compare(entries[at].word, word);
      if (order == 0) {
        sum += (unsigned)entries[at].value + (unsigned char)texts[at].text[60];
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
