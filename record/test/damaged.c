/* A program that writes over its ring's counters, and goes on. Usage: damaged head|tail [times]. */
#include <stdlib.h>
#include <string.h>

#include "emit.h"

int main(int argc, char **argv) {
  int of_head = argc < 2 || !strcmp(argv[1], "head");
  long times = argc > 2 ? strtol(argv[2], 0, 10) : 1;
  const uintptr_t region_bytes = (2 * MEMLODE_RING_CHUNKS + 2) * (uintptr_t)MEMLODE_RING_CHUNK_BYTES;
  emit_loads(1, 1);
  /* The first chunk of the first ring. */
  uintptr_t first =
      ((uintptr_t)__memlode_cursor & ~(uintptr_t)(MEMLODE_RING_CHUNK_BYTES - 1)) - MEMLODE_RING_CHUNK_BYTES;
  for (long i = 0; i < times; i++) {
    emit_loads(2, 2);
    uintptr_t rings = ((uintptr_t)__memlode_cursor - first) / region_bytes;
    struct memlode_ring_header *ring = (struct memlode_ring_header *)(first + rings * region_bytes);
    if (of_head)
      *(volatile uint32_t *)&ring->head += 100;
    else
      *(volatile uint32_t *)&ring->tail -= 100;
    emit_loads(1000, 100000); /* more than a ring holds */
  }
  return 5;
}
