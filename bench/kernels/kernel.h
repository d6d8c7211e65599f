// What every kernel needs: its argument, a generator with a fixed seed, memory that is there.
#ifndef KERNEL_H
#define KERNEL_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline long kernel_rounds(int argc, char **argv) {
  long rounds = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
  if (rounds <= 0) {
    fprintf(stderr, "usage: %s ROUNDS (a positive number)\n", argv[0]);
    exit(2);
  }
  return rounds;
}

static inline uint32_t kernel_random(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 32);
}

static inline void *kernel_allocate(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (!memory)
    abort();
  return memory;
}

#endif
