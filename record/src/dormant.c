/* Allocations while recording is off.
 *
 * An object may live when recording comes on that was made long before. So the dormant side of a function
 * still says which objects come and go, unless nobody will ever record: one call beside each of an
 * allocator's. Its words go into chunks of the thread's ring that hold nothing else:
 *
 *   cursor     dormant_cursor   the thread is
 *   a chunk    NULL             recording; allocations of functions on their dormant side go there, too
 *   NULL (*)   NULL             dormant, and has said nothing since
 *   NULL (*)   a chunk          dormant: chunk `head` of its ring, which ring_header.dormant_chunk names
 *   NULL (*)   scratch          dormant, and nobody listens to it: there is no ring for it
 *
 * (*) or scratch, in a function that has one side. The chunk is handed over when it is full and when the
 * thread records again, so that the two kinds stand in the stream in the order in which it happened.
 *
 * The first word behind a segment's header is a time stamp as soon as there are others: an object that one
 * thread has made and another one frees, or takes from its hands, changes hands in the trace as well. */
#include "runtime.h"
#include "syscalls.h"

static bool has_room(const uint64_t *cursor) { return (uintptr_t)cursor & MEMLODE_RING_ROOM_BIT; }

MEMLODE_HIDDEN void memlode_end_dormant(struct memlode_stream *stream, bool cut_short) {
  uint64_t *cursor = stream->dormant;
  struct memlode_ring_header *ring = stream->ring;
  if (!cursor || !ring || memlode_is_scratch(cursor)) {
    stream->dormant = NULL;
    return;
  }
  uint32_t head = atomic_load_explicit((_Atomic uint32_t *)&ring->head, memory_order_relaxed);
  uint32_t chunk = head % MEMLODE_RING_CHUNKS;
  uint64_t *start = memlode_chunk_start(ring, chunk);
  uint64_t *end = cursor;
  if (cut_short) /* the words of a segment that was not finished: see memlode_abandon */
    for (uint64_t *word = start + MEMLODE_PAIR_BYTES / 8; word > end; word--)
      if (word[-1]) {
        end = word;
        break;
      }
  if (cut_short && end == cursor)
    return; /* nothing was lost: the stream goes on here */
  stream->dormant = NULL;
  if (end == start) {
    ring->dormant_chunk = 0; /* what follows may be recorded in it */
    return;
  }
  ring->last_stamp[chunk] = memlode_time_stamp();
  ring->end[chunk] = (uint32_t)((uintptr_t)end - (uintptr_t)start) | MEMLODE_RING_END_DORMANT |
                     (cut_short ? MEMLODE_RING_END_CUT_SHORT : 0);
  memlode_hand_over(ring, head);
}

/* The calling thread's ring; claims one if it has none. */
static struct memlode_ring_header *own_ring(void) {
  if (memlode_ring)
    return memlode_ring;
  uint64_t signals;
  memlode_lock(&signals);
  if (!memlode_is_vfork_child() && memlode_connect_locked() == MEMLODE_CONNECTED && !memlode_is_too_deep())
    memlode_ring = memlode_claim_locked(!memlode_dormant_cursor);
  memlode_unlock(&signals);
  return memlode_ring;
}

/* Begins chunk `head`, if there is room for it. */
static bool begin_if_room(struct memlode_ring_header *ring, uint32_t *head) {
  if (has_room(memlode_dormant_cursor) && !memlode_is_scratch(memlode_dormant_cursor))
    return true; /* a handler that streams.c knows nothing of has done it */
  struct memlode_stream full = {.ring = ring, .dormant = memlode_dormant_cursor};
  memlode_end_dormant(&full, false);
  memlode_dormant_cursor = NULL;
  *head = atomic_load_explicit((_Atomic uint32_t *)&ring->head, memory_order_relaxed);
  uint32_t chunk = *head % MEMLODE_RING_CHUNKS;
  if (*head - atomic_load_explicit((_Atomic uint32_t *)&ring->tail, memory_order_acquire) >=
      MEMLODE_RING_CHUNKS)
    return false;
  if (ring->end[chunk]) { /* a call that was left by longjmp had begun to hand it over */
    memlode_hand_over(ring, *head);
    return false;
  }
  ring->first_stamp[chunk] = memlode_time_stamp();
  atomic_store_explicit((_Atomic uint32_t *)&ring->dormant_chunk, *head + 1, memory_order_release);
  memlode_dormant_cursor = memlode_chunk_start(ring, chunk);
  return true;
}

/* Begins the next chunk. False if there is no collector any more. */
static bool begin(struct memlode_ring_header *ring) {
  for (;;) {
    uint64_t signals;
    uint32_t head = 0;
    memlode_block_signals(&signals);
    bool begun = begin_if_room(ring, &head);
    memlode_restore_signals(&signals);
    if (begun)
      return true;
    if (!memlode_wait_for_room(ring, head))
      return false;
  }
}

/* The cursor that the thread's allocations go to, with room. */
static uint64_t **find_room(void) {
  memlode_notice_jump((uintptr_t)__builtin_frame_address(0), __memlode_cursor);
  if (memlode_is_strange_child())
    memlode_notice_child();
  if (memlode_ring && __memlode_cursor && !memlode_is_scratch(__memlode_cursor)) {
    if (!has_room(__memlode_cursor))
      memlode_switch(__memlode_cursor);
    if (has_room(__memlode_cursor) && !memlode_is_scratch(__memlode_cursor))
      return &__memlode_cursor;
  }
  if (has_room(memlode_dormant_cursor))
    return &memlode_dormant_cursor;
  struct memlode_ring_header *ring = NULL;
  if (atomic_load_explicit(&memlode_process.mode, memory_order_acquire) != MEMLODE_DISCARDING)
    ring = own_ring();
  if (!ring || !begin(ring))
    memlode_dormant_cursor = memlode_scratch_start(memlode_dormant_cursor);
  return &memlode_dormant_cursor;
}

/* Writes a segment, and returns the cursor behind it. */
static inline uint64_t *put(uint64_t *cursor, uint64_t anchor, int count, uint64_t a, uint64_t b,
                            uint64_t c) {
  bool others = atomic_load_explicit((_Atomic uint32_t *)&__memlode_others, memory_order_relaxed);
  /* In this order, and the cursor last: a handler may leave us for good, and the collector reads along. */
  volatile uint64_t *word = cursor;
  word[0] = anchor;
  word[1] = others ? memlode_time_stamp() : 1;
  word[2] = a;
  if (count > 1)
    word[3] = b;
  if (count > 2)
    word[4] = c;
  atomic_signal_fence(memory_order_seq_cst);
  return cursor + 2 + count;
}

static __attribute__((noinline, cold)) void put_elsewhere(uint64_t anchor, int count, uint64_t a, uint64_t b,
                                                          uint64_t c) {
  uint64_t **cursor = find_room();
  *cursor = put(*cursor, anchor, count, a, b, c);
}

static inline void write_segment(uint64_t anchor, int count, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t *cursor = memlode_dormant_cursor;
  if (__builtin_expect(!has_room(cursor) || memlode_is_strange_child(), 0))
    put_elsewhere(anchor, count, a, b, c);
  else
    memlode_dormant_cursor = put(cursor, anchor, count, a, b, c);
}

/* An object that ends: none, if it is at NULL. */
MEMLODE_EXPORT void __memlode_dormant_1(uint64_t anchor, uint64_t word) {
  if (word)
    write_segment(anchor, 1, word, 0, 0);
}

MEMLODE_EXPORT void __memlode_dormant_2(uint64_t anchor, uint64_t word, uint64_t second) {
  write_segment(anchor, 2, word, second, 0);
}

MEMLODE_EXPORT void __memlode_dormant_3(uint64_t anchor, uint64_t word, uint64_t second, uint64_t third) {
  write_segment(anchor, 3, word, second, third);
}
