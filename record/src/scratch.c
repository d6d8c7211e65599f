/* Memory for threads to write to when nobody reads: the same 64 KiB over and over.
 *
 * There are fewer scratch chunks than there may be threads. Two threads that share one write
 * over each other's words, which is no harm because nothing ever reads them; so no chunk needs an
 * owner, and a program may create and end as many threads as it likes.
 *
 *   area:   | slack | chunk 0 | slack | chunk 1 | slack | ...
 *                   ^ an odd multiple of chunk_bytes: room_bit is set inside a chunk */
#include "runtime.h"

enum { CHUNKS = 8 };

/* In .bss rather than mapped: it must not fail. Untouched pages cost nothing. */
static char area[(2 * CHUNKS + 3) * MEMLODE_RING_CHUNK_BYTES];
static _Atomic uint32_t next_chunk;

static uintptr_t first_chunk(void) {
  uintptr_t low = (uintptr_t)area;
  return ((low + MEMLODE_PAIR_BYTES - 1) & ~(uintptr_t)(MEMLODE_PAIR_BYTES - 1)) + MEMLODE_RING_CHUNK_BYTES;
}

MEMLODE_HIDDEN bool memlode_is_scratch(const uint64_t *cursor) {
  return (uintptr_t)cursor - first_chunk() < (uintptr_t)CHUNKS * MEMLODE_PAIR_BYTES;
}

static uintptr_t chunk_for(const uint64_t *cursor) {
  uintptr_t first = first_chunk();
  uintptr_t chunk;
  if (memlode_is_scratch(cursor))
    chunk = ((uintptr_t)cursor - first) / MEMLODE_PAIR_BYTES; /* stay where the caches are warm */
  else
    chunk = atomic_fetch_add_explicit(&next_chunk, 1, memory_order_relaxed) % CHUNKS;
  return first + chunk * MEMLODE_PAIR_BYTES;
}

MEMLODE_HIDDEN uint64_t *memlode_scratch_start(uint64_t *cursor) { return (uint64_t *)chunk_for(cursor); }

MEMLODE_HIDDEN uint64_t *memlode_scratch(uint64_t *cursor) {
  return __memlode_cursor = memlode_scratch_start(cursor);
}

MEMLODE_HIDDEN uint64_t *memlode_scratch_slack(uint64_t *cursor) {
  return (uint64_t *)(chunk_for(cursor) + MEMLODE_RING_CHUNK_BYTES);
}

MEMLODE_HIDDEN uint64_t *memlode_scratch_last(uint64_t *cursor) {
  return (uint64_t *)(chunk_for(cursor) + MEMLODE_RING_CHUNK_BYTES) - 1;
}
