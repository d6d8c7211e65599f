// Calls that led to an allocation: each path once, in a table that all processes share.
//
// Code needs no frame pointers: unwind tables are followed. That takes some microseconds, so what
// was found is remembered with the places in the stack where the return addresses stood:
//
//   remembered   slot of malloc's return address, and of its callers:   0x7ff0 → f, 0x8020 → g, 0x8070 → main
//
// If all of these hold the same again, the calls are the same.
#include "blocks.h"

#include <stdatomic.h>
#include <string.h>
#include <unwind.h>

enum {
  REMEMBERED = 1024,
  PROBES = 16,
  // Slots further up are not remembered: their stack may be another one's meanwhile.
  FURTHEST = 1 << 20,
};

// Calls, the innermost first.
struct walk {
  void *const *slot;
  unsigned calls;
  bool is_plain; // all return addresses stand where they were found
  uint64_t at[MEMLODE_BLOCK_NOTES_PATH_CALLS];
  uint32_t slots[MEMLODE_BLOCK_NOTES_PATH_CALLS]; // words from the first
};

static struct remembered {
  _Atomic bool is_used;
  uint16_t path;
  struct walk walk;
} remembered[REMEMBERED];

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument) {
  struct walk *walk = argument;
  void *const *slot = (void *const *)_Unwind_GetCFA(context) - 1;
  uint64_t at = _Unwind_GetIP(context);
  // This library's own frames come first.
  if (slot < walk->slot)
    return _URC_NO_REASON;
  if (at == 0 || walk->calls == MEMLODE_BLOCK_NOTES_PATH_CALLS)
    return _URC_END_OF_STACK;
  size_t words = (size_t)(slot - walk->slot);
  walk->is_plain = walk->is_plain && words < FURTHEST / sizeof(*slot) && (uint64_t)*slot == at;
  walk->at[walk->calls] = at;
  walk->slots[walk->calls] = (uint32_t)words;
  walk->calls++;
  return _URC_NO_REASON;
}

static uint64_t hash(const struct walk *walk) {
  uint64_t sum = walk->calls;
  for (unsigned at = 0; at < walk->calls; at++) {
    sum = (sum ^ walk->at[at]) * 0x9E3779B97F4A7C15U;
    sum ^= sum >> 29;
  }
  return sum | 1; // 0 is an entry that is free
}

static uint16_t number(const struct walk *walk) {
  struct memlode_block_path *paths = memlode_blocks_paths();
  uint64_t key = hash(walk);
  for (unsigned probe = 0; probe < PROBES; probe++) {
    uint16_t at = (uint16_t)((key >> 16 & 0xffff) + probe);
    if (at >= MEMLODE_BLOCK_NOTES_PATHS)
      continue;
    struct memlode_block_path *path = &paths[at];
    _Atomic uint64_t *holder = (_Atomic uint64_t *)&path->key;
    uint64_t known = atomic_load_explicit(holder, memory_order_relaxed);
    if (known == 0 && atomic_compare_exchange_strong(holder, &known, key)) {
      memcpy(path->at, walk->at, walk->calls * sizeof(*walk->at));
      atomic_store_explicit((_Atomic uint32_t *)&path->calls, walk->calls, memory_order_release);
      return at;
    }
    if (known == key)
      return at;
  }
  return MEMLODE_BLOCK_NOTE_NO_PATH;
}

static bool is_same(const struct walk *walk, void *const *slot) {
  if (walk->slot != slot || walk->calls == 0)
    return false;
  for (unsigned at = 0; at < walk->calls; at++)
    if ((uint64_t)slot[walk->slots[at]] != walk->at[at])
      return false;
  return true;
}

uint16_t memlode_blocks_path(void *const *slot) {
  uint64_t key = ((uint64_t)(uintptr_t)slot ^ (uint64_t)(uintptr_t)*slot << 7) * 0x9E3779B97F4A7C15U;
  struct remembered *known = &remembered[key >> 54];
  // Of two threads, or a handler and what it interrupts, one does without.
  bool is_ours = !atomic_exchange_explicit(&known->is_used, true, memory_order_acquire);
  uint16_t path;
  if (is_ours && is_same(&known->walk, slot)) {
    path = known->path;
  } else {
    struct walk walk = {.slot = slot, .calls = 0, .is_plain = true};
    _Unwind_Backtrace(step, &walk);
    path = number(&walk);
    if (is_ours && walk.is_plain) {
      known->walk = walk;
      known->path = path;
    }
  }
  if (is_ours)
    atomic_store_explicit(&known->is_used, false, memory_order_release);
  return path;
}
