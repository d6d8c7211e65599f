/* Writes as many words as it can. Usage: flood THREADS MILLIONS PATTERN; PATTERN is "block" (64 words
 * and a header, affine addresses), "load" (a word and a header) or "scatter" (a word that is hard to
 * predict). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"

static uint64_t millions;
static const char *pattern;

static void *work(void *number) {
  uint64_t address = (uint64_t)(uintptr_t)number << 32;
  uint64_t left = millions * 1000000;
  if (!strcmp(pattern, "block")) {
    for (; left > 65; left -= 65) {
      uint64_t words[64];
      for (int i = 0; i < 64; i++)
        words[i] = address += 8;
      emit(BLOCK, 64, words);
    }
  } else if (!strcmp(pattern, "load")) {
    for (; left > 1; left -= 2)
      emit_load(address += 8);
  } else {
    uint64_t random = address | 1;
    for (; left > 1; left -= 2) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      emit_load(address + (random >> 40));
    }
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  uint64_t count = strtoull(argv[1], 0, 10);
  millions = strtoull(argv[2], 0, 10);
  pattern = argv[3];
  pthread_t threads[64];
  if (count < 1 || count > 64)
    return 2;
  for (uint64_t t = 1; t < count; t++)
    pthread_create(&threads[t], 0, work, (void *)(uintptr_t)t);
  work(0);
  for (uint64_t t = 1; t < count; t++)
    pthread_join(threads[t], 0);
  return 0;
}
