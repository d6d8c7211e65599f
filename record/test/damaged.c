/* A program that writes over its ring's counters, and goes on. Usage: damaged head|tail [times]. */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emit.h"

/* The ring that the thread writes to: its header is in front of the first chunk. */
static struct memlode_ring_header *own_ring(void) {
  uintptr_t chunk = (uintptr_t)__memlode_cursor & ~(uintptr_t)(MEMLODE_RING_CHUNK_BYTES - 1);
  struct memlode_ring_header *ring = (struct memlode_ring_header *)(chunk - MEMLODE_RING_CHUNK_BYTES);
  while (ring->state != MEMLODE_RING_SLOT_ACTIVE || ring->tid != (uint32_t)syscall(SYS_gettid))
    ring = (struct memlode_ring_header *)((char *)ring - 2 * MEMLODE_RING_CHUNK_BYTES);
  return ring;
}

int main(int argc, char **argv) {
  int of_head = argc < 2 || !strcmp(argv[1], "head");
  long times = argc > 2 ? strtol(argv[2], 0, 10) : 1;
  for (long i = 0; i < times; i++) {
    emit_loads(1, 3);
    struct memlode_ring_header *ring = own_ring();
    if (of_head)
      *(volatile uint32_t *)&ring->head += 100;
    else
      *(volatile uint32_t *)&ring->tail -= 100;
    emit_loads(1000, 100000); /* more than a ring holds */
  }
  return 5;
}
