/* Where threads write when nobody reads: the same 64 KiB over and over.
 *
 * There are fewer scratch chunks than there may be threads. Two threads that share one write
 * over each other's words, which is no harm because nothing ever reads them; so no chunk needs an
 * owner, and a program may create and end as many threads as it likes.
 *
 *   area:   | slack | chunk 0 | slack | chunk 1 | slack | ...
 *                   ^ an odd multiple of chunk_bytes: room_bit is set inside a chunk */
#include "runtime.h"

enum { CHUNKS = 32 };

/* In .bss rather than mapped: it must not fail. Untouched pages cost nothing. */
static char area[(2 * CHUNKS + 3) * MEMLODE_RING_CHUNK_BYTES];
static _Atomic uint32_t next_chunk;

MEMLODE_HIDDEN uint64_t *memlode_scratch(uint64_t *cursor) {
  uintptr_t low = (uintptr_t)area;
  uintptr_t first =
      ((low + MEMLODE_PAIR_BYTES - 1) & ~(uintptr_t)(MEMLODE_PAIR_BYTES - 1)) + MEMLODE_RING_CHUNK_BYTES;
  uintptr_t chunk;
  if ((uintptr_t)cursor - first < (uintptr_t)CHUNKS * MEMLODE_PAIR_BYTES) {
    chunk = ((uintptr_t)cursor - first) / MEMLODE_PAIR_BYTES; /* stay where the caches are warm */
  } else {
    chunk = atomic_fetch_add_explicit(&next_chunk, 1, memory_order_relaxed) % CHUNKS;
  }
  return __memlode_cursor = (uint64_t *)(first + chunk * MEMLODE_PAIR_BYTES);
}
