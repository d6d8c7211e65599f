// What the programs of the truth bench need: variant and rounds from the command line, and shuffled orders.
#ifndef TRUTH_H
#define TRUTH_H

#include <string.h>

#include "../kernels/kernel.h"

#define APART __attribute__((noinline))

static inline long truth_rounds(int argc, char **argv) {
  long rounds = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
  if (rounds <= 0) {
    fprintf(stderr, "usage: %s VARIANT ROUNDS (a positive number)\n", argv[0]);
    exit(2);
  }
  return rounds;
}

// Whether the variant that was asked for is this one.
static inline int truth_is(char **argv, const char *variant) { return strcmp(argv[1], variant) == 0; }

// Has the compiler believe that memory may have changed, so that it does not take work out of the loop over
// rounds.
static inline void truth_forget(void) { __asm__ volatile("" ::: "memory"); }

// The numbers below count in random order.
static inline uint32_t *truth_order(uint32_t count, int is_shuffled, uint64_t *seed) {
  uint32_t *order = kernel_allocate(count, sizeof *order);
  for (uint32_t i = 0; i < count; i++)
    order[i] = i;
  for (uint32_t i = count - 1; is_shuffled && i > 0; i--) {
    uint32_t other = kernel_random(seed) % (i + 1);
    uint32_t kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  return order;
}

#endif
