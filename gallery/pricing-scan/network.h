// The road network that both programs price: the same arcs in the same order, from a fixed seed.
#ifndef NETWORK_H
#define NETWORK_H

#include <stdint.h>
#include <stdlib.h>

enum { NODES = 6000, ARCS = 400000, BLOCK = 4000, PASSES = 12 };

// An arc in the tree or suspended is no candidate: the scan looks at its state and goes on.
enum arc_state { SUSPENDED = -1, IN_TREE = 0, AT_LOWER = 1 };

static inline uint32_t random32(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 33);
}

struct road {
  int from, to, cost;
  enum arc_state state;
};

// The first NODES - 1 roads form a chain from node 0, the starting tree. Of the others one in eight is
// a candidate; the rest wait for a later phase, as most columns of a large linear program do.
static inline struct road next_road(uint64_t *seed, int index) {
  if (index < NODES - 1)
    return (struct road){index, index + 1, 1000, IN_TREE};
  int from = (int)(random32(seed) % NODES);
  int to = (int)(random32(seed) % NODES);
  int cost = (int)(random32(seed) % 20000) + 1;
  return (struct road){from, to, cost, random32(seed) % 8 == 0 && from != to ? AT_LOWER : SUSPENDED};
}

static inline void *must_allocate(size_t count, size_t bytes) {
  void *memory = calloc(count, bytes);
  if (!memory)
    abort();
  return memory;
}

#endif
