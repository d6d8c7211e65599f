/* A thread's ring: claim one, hand over full chunks, wait for room.
 *
 *   region:  | header | chunk 0 | slack | chunk 1 | slack | ... | chunk 15 | slack | pad |
 *
 * `head` counts the chunks handed over, `tail` those the collector has read and cleared. The
 * thread writes into chunk head % chunks; it may take that chunk while head - tail < chunks.
 * The collector gives a chunk back zeroed, its end[] included, before it moves `tail`.
 *
 * Signals. A handler that streams.c knows nothing of may interrupt a refill anywhere and need a refill
 * itself, and any handler may leave by longjmp. So no step of a hand-over is private to the call that began
 * it; whoever comes next finishes it from what it finds:
 *
 *   __memlode_cursor   end[head % chunks]   the thread is
 *   not NULL           0                    writing
 *   not NULL           set                  about to hand over (the caller's cursor has no room)
 *   NULL               set                  handing over: head is to move
 *   NULL               0                    to take the next chunk, once there is room, or asleep
 *
 * Each transition is one compare-and-swap, so it happens once. Only one thread ever changes these
 * words; the atomic instructions are there because a signal cannot split one. */
#include "runtime.h"
#include "syscalls.h"

#include <errno.h>
#include <linux/futex.h>
#include <time.h>

MEMLODE_HIDDEN uint64_t *memlode_chunk_start(struct memlode_ring_header *ring, uint32_t chunk) {
  return (uint64_t *)((char *)ring + (2 * (size_t)chunk + 1) * MEMLODE_RING_CHUNK_BYTES);
}

/* A thread that waits: what it looked at last, and for how long nothing of it has changed. */
struct wait {
  uint64_t looked_ms;
  uint32_t heartbeat;
  uint32_t silent_ms;  /* without a heartbeat */
  uint32_t unasked_ms; /* without a question whether there is a collector */
  uint32_t idle_ms;    /* in which the collector had nothing to do */
  uint32_t idle_beats; /* heartbeats in this time */
};

enum {
  GLANCE_MS = 200,
  IDLE_MS = 2000, /* by far longer than the collector sleeps at once */
  IDLE_BEATS = 8, /* at each it has looked at all rings */
  MOST_MISLED = 3,
};

static uint64_t now_ms(void) {
  struct timespec now = {0};
  memlode_call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Counts the time since the last look; when it is enough, the collector is given up. A signal that comes
 * often ends each wait early, and time in which program and collector were both stopped is no silence.
 * Returns false if the collector is well and has nothing to do: then it does not see what we wait for. */
static bool lose_patience(struct wait *wait) {
  struct memlode_process_header *shared = memlode_process.shared;
  uint64_t now = now_ms();
  uint32_t passed = now - wait->looked_ms < GLANCE_MS ? (uint32_t)(now - wait->looked_ms) : GLANCE_MS;
  wait->looked_ms = now;
  uint32_t heartbeat = atomic_load_explicit((_Atomic uint32_t *)&shared->heartbeat, memory_order_relaxed);
  uint32_t beats = heartbeat - wait->heartbeat;
  if (beats)
    wait->silent_ms = 0;
  wait->heartbeat = heartbeat;
  wait->silent_ms += passed;
  wait->unasked_ms += passed;
  if (shared->patience_ms && wait->silent_ms >= shared->patience_ms)
    memlode_give_up();
  if (atomic_load_explicit((_Atomic uint32_t *)&shared->collector_asleep, memory_order_relaxed)) {
    wait->idle_ms += passed;
    wait->idle_beats += beats < IDLE_BEATS / 2 ? beats : IDLE_BEATS / 2;
  } else {
    wait->idle_ms = wait->idle_beats = 0;
  }
  if (wait->unasked_ms >= GLANCE_MS) {
    wait->unasked_ms = 0;
    if (!memlode_collector_lives())
      memlode_discard();
  }
  return wait->idle_ms < IDLE_MS || wait->idle_beats < IDLE_BEATS;
}

/* A ring's counters are wrong, for something has written over them or our streams were mixed up. The thread
 * gets another ring; if that is not the first time, recording ends. The collector tells which words it did
 * not understand. */
static void lose_ring(void) {
  static _Atomic uint32_t misled;
  if (atomic_fetch_add_explicit(&misled, 1, memory_order_relaxed) >= MOST_MISLED)
    memlode_give_up();
}

MEMLODE_HIDDEN bool memlode_wait_for_room(struct memlode_ring_header *ring, uint32_t head) {
  _Atomic uint32_t *tail_word = (_Atomic uint32_t *)&ring->tail;
  _Atomic uint32_t *waits = (_Atomic uint32_t *)&ring->producer_waits;
  struct wait wait = {0};
  bool room = true;
  for (;;) {
    uint32_t tail = atomic_load_explicit(tail_word, memory_order_acquire);
    if (head - tail < MEMLODE_RING_CHUNKS)
      break;
    if (atomic_load_explicit(&memlode_process.mode, memory_order_relaxed) == MEMLODE_DISCARDING) {
      room = false;
      break;
    }
    if (!wait.looked_ms)
      wait.looked_ms = now_ms();
    /* Say that we wait, then look again: the collector moves tail, then looks whether we wait. */
    atomic_store_explicit(waits, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(tail_word, memory_order_relaxed) != tail)
      continue;
    memlode_doorbell(false);
    struct timespec glance = {.tv_sec = 0, .tv_nsec = GLANCE_MS * 1000000};
    memlode_call(SYS_futex, tail_word, FUTEX_WAIT, tail, &glance);
    if (!memlode_is_sealed() && !lose_patience(&wait)) {
      lose_ring();
      room = false;
      break;
    }
  }
  atomic_store_explicit(waits, 0, memory_order_relaxed);
  return room;
}

/* A collector that sleeps is woken for several chunks at once: waking it takes the program longer than
 * filling many of a chunk's lines, and it looks by itself ten times a second. */
enum { MEMLODE_ENOUGH_CHUNKS = MEMLODE_RING_CHUNKS / 4 };

MEMLODE_HIDDEN void memlode_hand_over(struct memlode_ring_header *ring, uint32_t head) {
  _Atomic uint32_t *head_word = (_Atomic uint32_t *)&ring->head;
  if (atomic_compare_exchange_strong_explicit(head_word, &head, head + 1, memory_order_release,
                                              memory_order_relaxed) &&
      head + 1 - atomic_load_explicit((_Atomic uint32_t *)&ring->tail, memory_order_relaxed) >=
          MEMLODE_ENOUGH_CHUNKS)
    memlode_doorbell(false);
}

/* The next cursor of a thread that has a ring, NULL if there is no collector any more. */
static uint64_t *advance(struct memlode_ring_header *ring, uint64_t *cursor) {
  _Atomic(uint64_t *) *published = (_Atomic(uint64_t *) *)&__memlode_cursor;
  _Atomic uint32_t *head_word = (_Atomic uint32_t *)&ring->head;
  for (;;) {
    uint64_t *seen = atomic_load_explicit(published, memory_order_relaxed);
    uint32_t head = atomic_load_explicit(head_word, memory_order_relaxed);
    uint32_t chunk = head % MEMLODE_RING_CHUNKS;
    uint64_t *start = memlode_chunk_start(ring, chunk);
    size_t used = (uintptr_t)cursor - (uintptr_t)start; /* nonsense, and too large, for NULL */
    if (used >= MEMLODE_RING_CHUNK_BYTES && used <= MEMLODE_PAIR_BYTES) {
      ring->last_stamp[chunk] = memlode_time_stamp();
      ring->end[chunk] = (uint32_t)used;
      if (!atomic_compare_exchange_strong_explicit(published, &seen, NULL, memory_order_relaxed,
                                                   memory_order_relaxed))
        continue; /* a handler has moved the cursor since */
      memlode_hand_over(ring, head);
      cursor = NULL;
      continue;
    }
    if (!seen) {
      if (!memlode_wait_for_room(ring, head))
        return NULL;
      if (((volatile struct memlode_ring_header *)ring)->end[chunk]) {
        memlode_hand_over(ring, head); /* a call that was left by longjmp had begun to */
        continue;
      }
      ring->first_stamp[chunk] = memlode_time_stamp();
      atomic_compare_exchange_strong_explicit(published, &seen, start, memory_order_relaxed,
                                              memory_order_relaxed);
      seen = atomic_load_explicit(published, memory_order_relaxed);
    }
    if ((uintptr_t)seen - (uintptr_t)start > MEMLODE_PAIR_BYTES) {
      /* Code that a handler had left for good, as it seemed, goes on: its chunk is gone. */
      struct memlode_stream stream = {.cursor = seen, .ring = ring};
      memlode_abandon(&stream, false);
      atomic_store_explicit(published, NULL, memory_order_relaxed);
      cursor = NULL;
      continue;
    }
    /* With room left: recording was off for a moment, and the code had written on before it noticed. */
    if (used < MEMLODE_RING_CHUNK_BYTES && cursor > seen)
      return cursor;
    if ((uintptr_t)seen & MEMLODE_RING_ROOM_BIT)
      return seen;
    cursor = seen; /* a handler used the chunk up */
  }
}

/* Abandoned code has stored its cursor before its last call and, if there was one, at its last refill.
 * So the words it wrote since lie behind that cursor, and in the same chunk. What nobody wrote is
 * zero: the last word that is not ends them. */
MEMLODE_HIDDEN void memlode_abandon(struct memlode_stream *stream, bool faulted) {
  struct memlode_ring_header *ring = stream->ring;
  memlode_end_dormant(stream, true);
  if (!ring || memlode_is_scratch(stream->cursor))
    stream->cursor = NULL;
  if (!stream->cursor)
    return;
  uint32_t head = atomic_load_explicit((_Atomic uint32_t *)&ring->head, memory_order_relaxed);
  uint32_t chunk = head % MEMLODE_RING_CHUNKS;
  if (!ring->end[chunk]) { /* else its words end there: a refill was interrupted */
    const uint64_t *start = memlode_chunk_start(ring, chunk);
    const uint64_t *first = start;
    if ((uintptr_t)stream->cursor - (uintptr_t)start <= MEMLODE_PAIR_BYTES)
      first = stream->cursor;
    const uint64_t *end = start + MEMLODE_PAIR_BYTES / 8;
    while (end > first && !end[-1])
      end--;
    if (end == first && first == stream->cursor && (!faulted || end == start))
      return; /* nothing since: the stream goes on here */
    ring->last_stamp[chunk] = memlode_time_stamp();
    ring->end[chunk] = (uint32_t)((uintptr_t)end - (uintptr_t)start) | MEMLODE_RING_END_CUT_SHORT;
  }
  stream->cursor = NULL;
  memlode_hand_over(ring, head);
}

/* Recording is off. Words that are not handed over yet are, and the collector hears that what follows in
 * the ring is of another time; the cursor is NULL until it is on again. */
static void pause(struct memlode_ring_header *ring, uint64_t *cursor) {
  _Atomic(uint64_t *) *published = (_Atomic(uint64_t *) *)&__memlode_cursor;
  uint64_t *seen = atomic_load_explicit(published, memory_order_relaxed);
  uint32_t head = atomic_load_explicit((_Atomic uint32_t *)&ring->head, memory_order_relaxed);
  uint32_t chunk = head % MEMLODE_RING_CHUNKS;
  size_t used = (uintptr_t)cursor - (uintptr_t)memlode_chunk_start(ring, chunk);
  if (!seen || used > MEMLODE_PAIR_BYTES)
    return; /* nothing was written since the last time */
  ring->last_stamp[chunk] = memlode_time_stamp();
  ring->end[chunk] = (uint32_t)used | MEMLODE_RING_END_GAP;
  if (atomic_compare_exchange_strong_explicit(published, &seen, NULL, memory_order_relaxed,
                                              memory_order_relaxed))
    memlode_hand_over(ring, head);
}

/* Returns where code goes on that is on the recording side: to a place that sends it to the other side soon,
 * if it has one. */
static uint64_t *rest(uint64_t *cursor, bool has_sides) {
  if (memlode_ring)
    pause(memlode_ring, cursor);
  if (!has_sides)
    return memlode_scratch(cursor);
  __memlode_cursor = NULL;
  return memlode_scratch_slack(cursor);
}

/* The calling thread's code has just stored its cursor, and will look at it again. */
MEMLODE_HIDDEN void memlode_rest(void) {
  if (!memlode_ring || !__memlode_cursor)
    return;
  uint64_t *cursor = __memlode_cursor;
  pause(memlode_ring, cursor);
  __memlode_cursor = memlode_scratch_slack(cursor);
}

/* Owner of the rings of a thread that claims its first one here. If there is another copy of this library, as
 * dlmopen makes one, the thread may have rings of that one. */
static uint64_t owner_elsewhere(const struct memlode_ring_header *first) {
  /* The loader fills in what is thread-local once more when all images are ready: until then rings are
   * forgotten, as if they were another copy's. */
  if (!memlode_process.has_begun)
    memlode_process.shared->copies = 1;
  if (!atomic_load_explicit((_Atomic uint32_t *)&memlode_process.shared->copies, memory_order_relaxed))
    return first->generation;
  const struct memlode_ring_header *found = first;
  for (uint64_t slot = 0; slot < memlode_process.rings && slot < first->generation; slot++) {
    const struct memlode_ring_header *ring = memlode_map_ring_locked(slot);
    if (ring && ring != first && ring->tid == first->tid &&
        atomic_load_explicit((_Atomic uint32_t *)&ring->state, memory_order_acquire) ==
            MEMLODE_RING_SLOT_ACTIVE)
      found = ring;
  }
  return found == first ? first->generation : found->owner;
}

/* A free ring for the calling thread, NULL if all are taken. */
static struct memlode_ring_header *claim(void) {
  for (uint32_t i = 0; i < memlode_process.rings; i++) {
    struct memlode_ring_header *ring = memlode_map_ring_locked(i);
    if (!ring)
      return NULL;
    _Atomic uint32_t *state = (_Atomic uint32_t *)&ring->state;
    uint32_t expected = MEMLODE_RING_SLOT_FREE;
    if (atomic_load_explicit(state, memory_order_relaxed) != expected ||
        !atomic_compare_exchange_strong_explicit(state, &expected, MEMLODE_RING_SLOT_CLAIMED,
                                                 memory_order_acquire, memory_order_relaxed))
      continue;
    _Atomic uint64_t *generation = (_Atomic uint64_t *)&memlode_process.shared->generation;
    ring->tid = (uint32_t)memlode_call(SYS_gettid);
    ring->first_stamp[0] = memlode_time_stamp();
    ring->generation = atomic_fetch_add_explicit(generation, 1, memory_order_relaxed) + 1;
    if (!memlode_owner) {
      memlode_owner = owner_elsewhere(ring);
      if (ring->generation > 1)
        atomic_store_explicit((_Atomic uint32_t *)&__memlode_others, 1, memory_order_relaxed);
    }
    ring->owner = memlode_owner;
    memlode_shield(ring, i);
    atomic_store_explicit(state, MEMLODE_RING_SLOT_ACTIVE, memory_order_release);
    memlode_doorbell(false);
    return ring;
  }
  return NULL;
}

/* When patience was in vain, there are too many threads alive: those that follow do not wait until a ring was
 * free again. */
MEMLODE_HIDDEN struct memlode_ring_header *memlode_claim_locked(bool patiently) {
  enum { TRIES = 1000 };
  struct memlode_ring_header *ring;
  for (int i = 0; !(ring = claim()); i++) {
    if (!patiently)
      return NULL;
    if (i == TRIES || (i % 256 == 255 && !memlode_collector_lives()))
      memlode_process.crowded = true;
    if (memlode_process.crowded)
      return NULL;
    memlode_doorbell(true);
    struct timespec millisecond = {.tv_sec = 0, .tv_nsec = 1000000};
    memlode_call(SYS_nanosleep, &millisecond, 0);
  }
  memlode_process.crowded = false;
  return ring;
}

/* The first cursor of a thread, or the next one of a thread that has had no ring so far. */
static uint64_t *begin(uint64_t *cursor, bool has_sides) {
  if (atomic_load_explicit(&memlode_process.mode, memory_order_acquire) == MEMLODE_DISCARDING)
    return memlode_scratch(cursor);
  if (memlode_is_strange_child())
    memlode_notice_child();
  const uint64_t *left = memlode_left_behind(cursor);
  bool is_first = !cursor || left;
  /* Signals stay blocked: a handler that claims a ring of its own would leave us with two. */
  uint64_t signals;
  struct memlode_ring_header *ring = NULL;
  memlode_lock(&signals);
  bool is_foreign = memlode_is_vfork_child();
  if (is_foreign && !cursor)
    memlode_tell_task();
  bool connected = !is_foreign && memlode_connect_locked() == MEMLODE_CONNECTED;
  if (memlode_is_dormant()) { /* as it turns out now */
    cursor = rest(cursor, has_sides);
    memlode_unlock(&signals);
    return cursor;
  }
  if (connected && memlode_is_too_deep()) {
    connected = false;
    if (is_first)
      atomic_fetch_add_explicit((_Atomic uint32_t *)&memlode_process.shared->unregistered_threads, 1,
                                memory_order_relaxed);
  }
  if (connected) {
    ring = memlode_claim_locked(is_first);
    if (!ring && is_first)
      atomic_fetch_add_explicit((_Atomic uint32_t *)&memlode_process.shared->unregistered_threads, 1,
                                memory_order_relaxed);
  }
  if (ring) {
    memlode_ring = ring;
    uint64_t *start = memlode_chunk_start(ring, 0);
    while (left && left < cursor)
      *start++ = *left++;
    cursor = __memlode_cursor = start;
  } else {
    cursor = memlode_scratch(cursor);
  }
  memlode_unlock(&signals);
  return cursor;
}

/* Notes that what was allocated until now was while the thread was dormant. */
static void wake(void) {
  uint64_t signals;
  memlode_block_signals(&signals);
  struct memlode_stream stream = {.ring = memlode_ring, .dormant = memlode_dormant_cursor};
  memlode_end_dormant(&stream, false);
  memlode_dormant_cursor = NULL;
  memlode_restore_signals(&signals);
}

static uint64_t *next(uint64_t *cursor, bool has_sides) {
  if (memlode_is_strange_child())
    memlode_notice_child();
  if (memlode_is_shared())
    return __memlode_cursor = memlode_scratch_last(cursor);
  if (memlode_notice_jump((uintptr_t)__builtin_frame_address(0), cursor))
    cursor = __memlode_cursor;
  struct memlode_ring_header *ring = memlode_ring;
  if (memlode_is_dormant())
    return rest(cursor, has_sides);
  if (memlode_dormant_cursor)
    wake();
  if (ring) {
    if (memlode_is_scratch(cursor)) /* awake again */
      cursor = __memlode_cursor = NULL;
    uint64_t *next = advance(ring, cursor);
    if (next)
      return next;
    memlode_ring = NULL;
  }
  cursor = begin(cursor, has_sides);
  /* Words that were left behind may have filled the first chunk. */
  return memlode_ring && !((uintptr_t)cursor & MEMLODE_RING_ROOM_BIT) ? next(cursor, has_sides) : cursor;
}

MEMLODE_HIDDEN uint64_t *memlode_refill(uint64_t *cursor) { return next(cursor, false); }

MEMLODE_HIDDEN uint64_t *memlode_more(uint64_t *cursor) {
  if (!memlode_is_scratch(cursor))
    return next(cursor, false);
  /* On again: without room, the code gets a chunk where it can change sides. */
  return memlode_is_dormant() || !memlode_ring ? memlode_scratch(cursor) : memlode_scratch_slack(cursor);
}

MEMLODE_HIDDEN uint64_t *memlode_switch(uint64_t *cursor) { return next(cursor, true); }
