/* The code that the LLVM pass emits, written by hand: programs here are "instrumented" without a compiler
 * plug-in.
 *
 * The anchors and the site table come from an assembler file that crates/collect/tests generates;
 * it is linked into each image (program or shared library) once. */
#ifndef MEMLODE_TEST_EMIT_H
#define MEMLODE_TEST_EMIT_H

#include "memlode_format.h"
#include "memlode_record.h"

/* Segments of the generated table. */
enum {
  LOAD,  /* one access of 8 bytes; word: address */
  ENTER, /* word: frame */
  EXIT,  /* no word */
  ALLOC, /* words: base, bytes */
  FREE,  /* word: base */
  BLOCK, /* 64 loads; 64 words */
  PAIR,  /* two loads, the second 8 bytes behind the first; word: address */
  RANGE, /* so many bytes; words: address, length */
  LOOP,  /* two loads by turns, 8 bytes further each; words: count, address of each */
};

extern const struct memlode_anchor memlode_test_anchors[] __attribute__((visibility("hidden")));

static inline void emit(int segment, int count, const uint64_t *words) {
  uint64_t *cursor = __memlode_cursor;
  if (!((uintptr_t)cursor & MEMLODE_RING_ROOM_BIT))
    cursor = __memlode_refill(cursor);
  cursor[0] = (uint64_t)(uintptr_t)&memlode_test_anchors[segment];
  for (int i = 0; i < count; i++)
    cursor[1 + i] = words[i];
  __memlode_cursor = cursor + 1 + count;
}

static inline void emit_load(uint64_t address) { emit(LOAD, 1, &address); }

/* Loads of addresses first, first + 1, ...: a test finds out whether one is missing. */
static inline void emit_loads(uint64_t first, uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    emit_load(first + i);
}

/* -DUNANNOUNCED: an image whose constructor has not run yet. */
#ifndef UNANNOUNCED
__attribute__((constructor)) static void emit_module_load(void) {
  __memlode_module_load(memlode_test_anchors);
}
__attribute__((destructor)) static void emit_module_unload(void) {
  __memlode_module_unload(memlode_test_anchors);
}

#endif

#endif
