// A library to preload: where the large blocks of a program come from, for `memlode sample`.
//
// Each function here calls the one that the program would have called without it, and notes what it
// gave. C++'s operator new and Rust's allocator call malloc and its kin.
//
//   MEMLODE_BLOCKS=FILE      memory that is shared with `memlode sample`; without it nothing is noted
//   MEMLODE_BLOCKS=wait      memory of its own, for a `memlode sample -p` that comes later
#include "blocks.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PUBLIC __attribute__((visibility("default")))
// Where the return address of the function that uses it stands: it keeps a frame.
#define SLOT ((void *const *)__builtin_frame_address(0) + 1)

enum { TAKEN = MEMLODE_BLOCK_NOTE_TAKEN, FREED = MEMLODE_BLOCK_NOTE_FREED };

// The functions behind these ones.
static struct {
  void *(*malloc)(size_t);
  void *(*calloc)(size_t, size_t);
  void *(*realloc)(void *, size_t);
  void (*free)(void *);
  void *(*memalign)(size_t, size_t);
  void *(*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void **, size_t, size_t);
  void *(*valloc)(size_t);
  void *(*pvalloc)(size_t);
  size_t (*usable)(void *);
  void *(*mmap)(void *, size_t, int, int, int, off_t);
  int (*munmap)(void *, size_t);
  void *(*mremap)(void *, size_t, size_t, int, ...);
} next;

// glibc's allocator is behind: then the length of a block stands in front of it, which is faster
// than to call for it.
static bool is_glibc;

// What dlsym itself allocates, before it has found an allocator.
static _Alignas(16) char early[1 << 14];
static size_t early_used;

static void *early_block(size_t bytes) {
  size_t whole = (bytes + 31) & ~(size_t)15; // with a header of 16 bytes for the length
  if (bytes > sizeof(early) || whole > sizeof(early) - early_used)
    return NULL;
  char *block = early + early_used + 16;
  memcpy(block - 16, &bytes, sizeof(bytes));
  // No chunk of glibc's is as long.
  memset(block - 8, 0xff, 8);
  early_used += whole;
  return block;
}

static bool is_early(const void *block) {
  return (const char *)block >= early && (const char *)block < early + sizeof(early);
}

#define FIND(to, name) ((to) = (__typeof__(to))dlsym(RTLD_NEXT, name))

// The first call of all comes long before there is a second thread. Returns whether functions were
// found.
static bool found(void) {
  static bool looking;
  if (next.malloc != NULL)
    return true;
  if (looking)
    return false;
  looking = true;
  FIND(next.calloc, "calloc");
  FIND(next.realloc, "realloc");
  FIND(next.free, "free");
  FIND(next.memalign, "memalign");
  FIND(next.aligned_alloc, "aligned_alloc");
  FIND(next.posix_memalign, "posix_memalign");
  FIND(next.valloc, "valloc");
  FIND(next.pvalloc, "pvalloc");
  FIND(next.usable, "malloc_usable_size");
  FIND(next.mmap, "mmap");
  FIND(next.munmap, "munmap");
  FIND(next.mremap, "mremap");
  FIND(next.malloc, "malloc");
  is_glibc = next.malloc != NULL && dlsym(RTLD_NEXT, "__libc_malloc") == (void *)next.malloc;
  return next.malloc != NULL;
}

static bool is_large(size_t bytes) {
  if (memlode_blocks_least == 0)
    memlode_blocks_begin();
  return memlode_blocks_least != 0 && bytes >= memlode_blocks_least;
}

static void *taken(void *block, size_t bytes, void *const *slot) {
  if (block != NULL && is_large(bytes))
    memlode_blocks_note(TAKEN, block, bytes, slot);
  return block;
}

// A block that is too small for a note, as most are. Nothing is before all is found and decided.
static bool is_small(size_t bytes) { return bytes < memlode_blocks_least; }

static bool is_small_block(const void *block) {
  return block != NULL && is_glibc && is_small(((const size_t *)block)[-1] & ~(size_t)7);
}

// The length of a block that is about to be given back, where that is worth a note; else 0.
static size_t large(void *block) {
  if (block == NULL || next.usable == NULL || !memlode_blocks_are_noted())
    return 0;
  size_t bytes = next.usable(block);
  return is_large(bytes) ? bytes : 0;
}

PUBLIC void *malloc(size_t bytes) {
  if (is_small(bytes))
    return next.malloc(bytes);
  return found() ? taken(next.malloc(bytes), bytes, SLOT) : early_block(bytes);
}

PUBLIC void *calloc(size_t count, size_t each) {
  size_t bytes = 0;
  bool is_too_much = __builtin_mul_overflow(count, each, &bytes);
  // The allocator behind refuses what is too much, by the same product.
  if (is_small(bytes))
    return next.calloc(count, each);
  if (!found())
    return is_too_much ? NULL : early_block(bytes);
  return taken(next.calloc(count, each), bytes, SLOT);
}

PUBLIC void free(void *block) {
  if (is_small_block(block)) {
    next.free(block);
    return;
  }
  // What was given early stays.
  if (block == NULL || is_early(block) || !found())
    return;
  if (large(block) != 0)
    memlode_blocks_note(FREED, block, 0, SLOT);
  next.free(block);
}

static void *resized(void *block, size_t bytes, void *const *slot) {
  if (!found())
    return early_block(bytes);
  if (is_early(block)) {
    size_t before = 0;
    memcpy(&before, (char *)block - 16, sizeof(before));
    void *moved = next.malloc(bytes);
    return moved == NULL ? NULL : memcpy(moved, block, before < bytes ? before : bytes);
  }
  size_t before = large(block);
  if (before != 0)
    memlode_blocks_note(FREED, block, 0, slot);
  void *moved = next.realloc(block, bytes);
  // It is where it was, if there is no room.
  if (moved == NULL && bytes != 0 && before != 0)
    taken(block, before, slot);
  return taken(moved, bytes, slot);
}

PUBLIC void *realloc(void *block, size_t bytes) {
  if (is_small(bytes) && (block == NULL || is_small_block(block)))
    return next.realloc(block, bytes);
  return resized(block, bytes, SLOT);
}

PUBLIC void *reallocarray(void *block, size_t count, size_t each) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, each, &bytes)) {
    errno = ENOMEM;
    return NULL;
  }
  return resized(block, bytes, SLOT);
}

PUBLIC void *memalign(size_t align, size_t bytes) {
  return found() && next.memalign != NULL ? taken(next.memalign(align, bytes), bytes, SLOT) : NULL;
}

PUBLIC void *aligned_alloc(size_t align, size_t bytes) {
  return found() && next.aligned_alloc != NULL ? taken(next.aligned_alloc(align, bytes), bytes, SLOT) : NULL;
}

PUBLIC int posix_memalign(void **to, size_t align, size_t bytes) {
  if (!found() || next.posix_memalign == NULL)
    return ENOMEM;
  int status = next.posix_memalign(to, align, bytes);
  if (status == 0)
    taken(*to, bytes, SLOT);
  return status;
}

PUBLIC void *valloc(size_t bytes) {
  return found() && next.valloc != NULL ? taken(next.valloc(bytes), bytes, SLOT) : NULL;
}

PUBLIC void *pvalloc(size_t bytes) {
  return found() && next.pvalloc != NULL ? taken(next.pvalloc(bytes), bytes, SLOT) : NULL;
}

static void *mapped(void *memory, size_t bytes, void *const *slot) {
  if (memory != MAP_FAILED && is_large(bytes))
    memlode_blocks_note(MEMLODE_BLOCK_NOTE_MAPPED, memory, bytes, slot);
  return memory;
}

static void unmapped(void *memory, size_t bytes, void *const *slot) {
  if (is_large(bytes))
    memlode_blocks_note(MEMLODE_BLOCK_NOTE_UNMAPPED, memory, bytes, slot);
}

PUBLIC void *mmap(void *wish, size_t bytes, int protection, int flags, int file, off_t from) {
  if (!found() || next.mmap == NULL) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return mapped(next.mmap(wish, bytes, protection, flags, file, from), bytes, SLOT);
}

// On 64 bits there is one function of two names.
PUBLIC void *mmap64(void *wish, size_t bytes, int protection, int flags, int file, off_t from)
    __attribute__((alias("mmap")));

PUBLIC int munmap(void *memory, size_t bytes) {
  if (!found() || next.munmap == NULL) {
    errno = EINVAL;
    return -1;
  }
  unmapped(memory, bytes, SLOT);
  return next.munmap(memory, bytes);
}

PUBLIC void *mremap(void *memory, size_t before, size_t bytes, int flags, ...) {
  if (!found() || next.mremap == NULL) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  va_list more;
  va_start(more, flags);
  void *wish = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void *) : NULL;
  va_end(more);
  void *moved = next.mremap(memory, before, bytes, flags, wish);
  if (moved != MAP_FAILED)
    unmapped(memory, before, SLOT);
  return mapped(moved, bytes, SLOT);
}
