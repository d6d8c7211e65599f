/* Which of its streams a thread writes to.
 *
 * Instrumented code keeps its cursor in a register and has stored it only before its last call, so
 * a signal handler that wrote on from the stored one would write over the words of the code it
 * interrupted. Every handler therefore has a stream of its own: level 0 is the thread's, level n
 * that of handlers n deep. While handlers run,
 *
 *   handlers[n].interrupted         is the stream of level n - 1, which the n-th handler interrupted
 *   __memlode_cursor, memlode_ring  are the stream of level `depth`, with memlode_dormant_cursor
 *   idle[n]                         is the stream of level n, for n > depth
 *
 * Another signal may come between any two of the stores below. Its handler leaves the cursor and
 * the ring as it found them and takes the level above; so `depth` goes up before a level is
 * touched, and down when everything is in its place again.
 *
 * A handler may be left for good: by longjmp, by an exception, by a switch of stacks. Then the code
 * it interrupted is abandoned, perhaps in the middle of a segment. longjmp and exceptions tell us. Otherwise
 * the stack pointer shows it at the next refill or signal: it is above the handler's frame, or not on
 * the alternate stack that the handler was on. It may take a few thousand words to show; until then
 * what the thread does goes to the handler's stream. A handler may also come back (suspended.c). */
#include "runtime.h"
#include "syscalls.h"

#include <sys/mman.h>

/* The deepest level and those above have no ring: they share a scratch chunk and are not recorded. */
enum { DEEPEST = MEMLODE_LEVELS - 1 };

static __thread struct {
  uint32_t depth;
  struct memlode_handler handlers[MEMLODE_LEVELS]; /* the first one is not used */
  struct memlode_stream idle[MEMLODE_LEVELS];
} thread;

static const struct memlode_stream no_stream;

static void in_order(void) { atomic_signal_fence(memory_order_seq_cst); }

static uint32_t top_level(void) { return thread.depth < DEEPEST ? thread.depth : DEEPEST; }

static struct memlode_stream running(void) {
  return (struct memlode_stream){
      .cursor = __memlode_cursor, .ring = memlode_ring, .dormant = memlode_dormant_cursor};
}

static void run(struct memlode_stream stream) {
  memlode_ring = stream.ring;
  memlode_dormant_cursor = stream.dormant;
  __memlode_cursor = stream.cursor;
}

static void set_interrupted(struct memlode_stream stream, uint32_t value) {
  if (stream.ring)
    atomic_store_explicit((_Atomic uint32_t *)&stream.ring->interrupted, value, memory_order_relaxed);
}

/* A handler's frame is known, or known no longer; until then it counts as running. */
static void set_extent(struct memlode_handler *handler, uintptr_t frame, uintptr_t stack_low) {
  handler->stack_low = stack_low;
  in_order();
  handler->frame = frame;
}

static void forget_extent(struct memlode_handler *handler) {
  handler->frame = 0;
  in_order();
  handler->stack_low = 0;
}

/* Counts the handlers that surround code whose stack pointer is `at`. */
static uint32_t handlers_around(uintptr_t at) {
  for (uint32_t level = top_level(); level > 0; level--) {
    const struct memlode_handler *handler = &thread.handlers[level];
    if (!handler->frame || at - handler->stack_low <= handler->frame - handler->stack_low)
      return level == DEEPEST ? thread.depth : level;
  }
  return 0;
}

/* A handler is over, and the code that it interrupted will not go on. */
static void abandon(struct memlode_handler *handler) {
  memlode_abandon(&handler->interrupted, handler->faulted);
  set_interrupted(handler->interrupted, 0);
}

/* The handlers above `level` are over, if the lowest of them is: they have interrupted one another. The
 * running code is of that level; if its cursor is stored, it goes on in that level's stream. Otherwise it
 * must stay where it is, and the streams trade places. */
static void end_handlers(uint32_t level, bool cursor_is_stored) {
  uint32_t top = top_level();
  struct memlode_stream now = running();
  for (uint32_t n = level + 1; n <= top; n++) {
    struct memlode_handler *handler = &thread.handlers[n];
    abandon(handler);
    forget_extent(handler);
    if (!cursor_is_stored)
      thread.idle[n] = handler->interrupted;
    else if (n > level + 1)
      thread.idle[n - 1] = handler->interrupted;
  }
  if (cursor_is_stored && level < top) {
    thread.idle[top] = now;
    run(thread.handlers[level + 1].interrupted);
  }
}

/* They are not over: the running code keeps the stream that it writes to, and theirs are for nobody else. */
static void suspend_handlers(uint32_t level) {
  uint32_t group = memlode_new_group();
  for (uint32_t n = level + 1; n <= top_level(); n++) {
    memlode_suspend(&thread.handlers[n], n, group);
    forget_extent(&thread.handlers[n]);
    thread.idle[n] = no_stream;
  }
}

/* The handlers above `level` are not around the running code, whose stack pointer is `at`. */
static void leave_handlers(uint32_t level, bool cursor_is_stored, uintptr_t at) {
  uint64_t signals;
  memlode_block_signals(&signals);
  if (level < top_level() && !memlode_is_over(&thread.handlers[level + 1], at))
    suspend_handlers(level);
  else
    end_handlers(level, cursor_is_stored);
  thread.depth = level;
  memlode_restore_signals(&signals);
}

MEMLODE_HIDDEN bool memlode_notice_jump(uintptr_t stack_pointer, uint64_t *cursor) {
  if (!thread.depth)
    return false;
  uint32_t level = handlers_around(stack_pointer);
  if (level >= thread.depth)
    return false;
  __memlode_cursor = cursor;
  leave_handlers(level, true, stack_pointer);
  return true;
}

MEMLODE_HIDDEN void memlode_leave_handler(uintptr_t stack_pointer) {
  uint64_t signals;
  memlode_block_signals(&signals);
  uint32_t level = handlers_around(stack_pointer);
  if (level > 0 && level <= thread.depth) {
    end_handlers(level - 1, true);
    thread.depth = level - 1;
  }
  memlode_restore_signals(&signals);
}

/* Keeps a stream for handlers of this level, or of one above. */
static void keep_idle(struct memlode_stream stream, uint32_t level) {
  while (level < DEEPEST && thread.idle[level].ring)
    level++;
  thread.idle[level] = stream;
}

/* A handler comes whose frame is where another one's was, which is over therefore. */
static void forget_overwritten(const struct memlode_activation *activation) {
  struct memlode_handler handler;
  uint64_t signals;
  uintptr_t high = activation->stack_low ? activation->frame : activation->interrupted_at;
  memlode_block_signals(&signals);
  while (memlode_take_overwritten(activation->frame, high, &handler)) {
    abandon(&handler);
    keep_idle(handler.interrupted, thread.depth + 1 < DEEPEST ? thread.depth + 1 : DEEPEST);
  }
  memlode_restore_signals(&signals);
}

/* The handler that ends had been suspended, perhaps: the code that it has interrupted goes on in its stream.
 */
static void end_suspended(const struct memlode_activation *activation) {
  uint32_t group;
  if (!memlode_find_suspended(activation->frame, &group))
    return; /* that code will find out at its next refill that its chunk is gone */
  if (thread.depth)
    leave_handlers(0, true, activation->interrupted_at);
  uint64_t signals;
  memlode_block_signals(&signals);
  struct memlode_stream now = running();
  struct memlode_handler handler;
  for (uint32_t level; (level = memlode_take_suspended(group, &handler));) {
    if (level > activation->level) {
      abandon(&handler);
      keep_idle(handler.interrupted, level);
    } else if (level == activation->level) {
      set_interrupted(handler.interrupted, 0);
      run(handler.interrupted);
    } else {
      thread.handlers[level] = handler;
    }
  }
  keep_idle(now, activation->level);
  thread.depth = activation->level - 1;
  memlode_restore_signals(&signals);
}

MEMLODE_HIDDEN bool memlode_is_too_deep(void) { return thread.depth >= DEEPEST; }

MEMLODE_HIDDEN void memlode_begin_handler(struct memlode_activation *activation) {
  if (memlode_is_strange_child())
    memlode_notice_child();
  if (memlode_is_shared())
    return; /* nor is there one level of two tasks at once */
  if (thread.depth) {
    uint32_t around = handlers_around(activation->interrupted_at);
    if (around < thread.depth)
      leave_handlers(around, false, activation->interrupted_at);
  }
  forget_overwritten(activation);
  uint32_t level = activation->level = ++thread.depth;
  in_order();
  if (level > DEEPEST)
    return;
  struct memlode_handler *handler = &thread.handlers[level];
  handler->interrupted = running();
  handler->interrupted_at = activation->interrupted_at;
  handler->faulted = activation->faulted;
  set_interrupted(handler->interrupted, 1);
  set_extent(handler, activation->frame, activation->stack_low);
  in_order();
  run(thread.idle[level]);
}

MEMLODE_HIDDEN void memlode_end_handler(const struct memlode_activation *activation) {
  uint32_t level = activation->level;
  if (!level)
    return;
  if (level > DEEPEST) {
    if (thread.depth >= level)
      thread.depth = level - 1;
    return;
  }
  struct memlode_handler *handler = &thread.handlers[level];
  if (thread.depth < level || handler->frame != activation->frame) {
    end_suspended(activation);
    return;
  }
  if (thread.depth > level)
    leave_handlers(level, true, activation->frame);
  thread.idle[level] = running();
  in_order();
  run(handler->interrupted);
  in_order();
  set_interrupted(handler->interrupted, 0);
  forget_extent(handler);
  in_order();
  thread.depth = level - 1;
}

MEMLODE_HIDDEN bool memlode_forget_streams(void) {
  bool is_interrupting = memlode_forget_suspended() || thread.depth;
  for (uint32_t level = 1; level <= DEEPEST; level++) {
    thread.handlers[level].interrupted = thread.idle[level] = no_stream;
    in_order(); /* not a call of memset */
  }
  run(no_stream);
  return is_interrupting;
}

/* The stream's chunk in use is whole up to the cursor that was stored. */
static void settle(const struct memlode_stream *stream) {
  struct memlode_ring_header *ring = stream->ring;
  if (!ring)
    return;
  uint32_t head = atomic_load_explicit((_Atomic uint32_t *)&ring->head, memory_order_relaxed);
  uintptr_t start = (uintptr_t)memlode_chunk_start(ring, head % MEMLODE_RING_CHUNKS);
  uintptr_t used = (uintptr_t)stream->cursor - start;
  if (used > MEMLODE_PAIR_BYTES)
    used = (uintptr_t)stream->dormant - start;
  if (used <= MEMLODE_PAIR_BYTES)
    atomic_store_explicit((_Atomic uint64_t *)&ring->settled, (uint64_t)head << 32 | used,
                          memory_order_release);
}

MEMLODE_HIDDEN void memlode_settle(void) {
  uint32_t top = top_level();
  struct memlode_stream now = running();
  settle(&now);
  for (uint32_t level = top + 1; level <= DEEPEST; level++)
    settle(&thread.idle[level]);
}
