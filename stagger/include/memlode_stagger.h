// Buffers that do not collide in the low bits of their addresses, for programs that choose where they lie.
// C11 and C++; nothing to link with.
//
//   if (memlode_aliases(from, to, 64))     // a loop that reads `from` and writes `to` at the same index
//     copy_backwards(to, from, count);     // … takes a path that does not mind
//
//   float *a = memlode_aligned_alloc(64, bytes, 0), *b = memlode_aligned_alloc(64, bytes, 1);
//   …
//   memlode_aligned_free(b);
#ifndef MEMLODE_STAGGER_H
#define MEMLODE_STAGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

// The bits of an address by which processors compare a load with stores on their way: 12, whatever the pages.
#define MEMLODE_ALIAS_BYTES ((uintptr_t)4096)

// Returns whether a loop that loads from `load` and stores to `store`, at the same index, can meet its own
// stores: going up, stores are ahead of loads by less than `window` bytes in the low 12 bits. 64 is what a
// vector loop has on its way at least; the same buffer does not count, since there the loop means it.
static inline bool memlode_aliases(const void *load, const void *store, size_t window) {
  uintptr_t ahead = ((uintptr_t)store - (uintptr_t)load) % MEMLODE_ALIAS_BYTES;
  return load != store && ahead < window;
}

// Bytes that a buffer is to be moved by, so that buffers of different numbers lie far apart in the low 12
// bits: a multiple of `align`, which is a power of two. From 4096 on, pages: that counts where pages are
// huge.
static inline size_t memlode_colour(size_t align, size_t number) {
  size_t unit = align < 64 ? 64 : align;
  size_t colours = unit < MEMLODE_ALIAS_BYTES ? MEMLODE_ALIAS_BYTES / unit
                   : unit < ((size_t)1 << 20) ? ((size_t)1 << 20) / unit
                                              : 1;
  // Odd, and near the golden ratio of 64.
  return number * 25 % colours * unit;
}

// A buffer of an alignment (a power of two) that lies at the colour of its number; NULL if there is no
// memory.
static inline void *memlode_aligned_alloc(size_t align, size_t bytes, size_t number) {
  size_t unit = align < 64 ? 64 : align;
  size_t colour = memlode_colour(align, number);
  // Before the buffer lies a unit with the address that `free` wants.
  size_t all = unit + colour + bytes;
  if (all < bytes)
    return NULL;
  void *base = NULL;
  if (posix_memalign(&base, unit < MEMLODE_ALIAS_BYTES ? MEMLODE_ALIAS_BYTES : unit, all) != 0)
    return NULL;
  char *given = (char *)base + unit + colour;
  ((void **)given)[-1] = base;
  return given;
}

// Gives back what memlode_aligned_alloc gave; NULL is nothing.
static inline void memlode_aligned_free(void *given) {
  if (given != NULL)
    free(((void **)given)[-1]);
}

#ifdef __cplusplus
}
#endif
#endif
