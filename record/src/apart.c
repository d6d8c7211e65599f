/* Words of a child before it is known to be one.
 *
 * A child that inline assembly makes, or code that memlode did not compile, goes on with its parent's cursor:
 * it would write into its parent's ring. So rings are not inherited (MADV_DONTFORK). But a store to memory
 * that is not there ends a program; something must be there, and be there without anybody's doing. That is
 * what the kernel does for stacks: where memory is missing below one, it grows. So each ring has a page
 * in its pad that is mapped as a stack is, which cannot grow in the parent, where the ring lies below it:
 *
 *   parent   | header | chunk 0 | slack | ... | chunk 15 | slack | pad | page, MAP_GROWSDOWN | pad |
 *   child    |        not inherited                              | page                |
 *                          <─── grows to the lowest word that is written
 *
 * What is there then is the child's own, and all zero but for its own words. The page that is wiped when a
 * process forks is the canary, which tells the child at its next refill, its next signal or its end that it
 * is one. Then it gets a ring, and its words are copied there. */
#include "runtime.h"
#include "syscalls.h"

#include <sys/mman.h>
#include <sys/resource.h>

static _Atomic uint32_t spare_canary;

/* Areas of the address space: below all that the kernel places by itself, so that nothing comes to lie where
 * rings were in a child, and above what a heap reaches. A child that was not seen has its parent's area, and
 * another one for its own rings. */
static const uintptr_t first_area = 0x1a0000000000;
enum {
  AREAS = 64,
  PAGE_BYTES = 4096,
  STRIDE_BYTES = 0x400000, /* from ring to ring: where a stack grows, other memory is at least 1 MiB away */
};
static const uintptr_t area_bytes = (uintptr_t)MEMLODE_RING_RINGS * STRIDE_BYTES;

_Static_assert(STRIDE_BYTES >= MEMLODE_REGION_BYTES + 0x100000 + MEMLODE_PAIR_BYTES &&
                   STRIDE_BYTES % MEMLODE_PAIR_BYTES == 0,
               "rings are apart, and at multiples of a pair");

/* The area of the rings, and that of the parent's, in a child that was not seen; 0 if there is none. */
static uintptr_t area, left;

/* Connections so far, in this process and those it was forked from; and by slot, the one under which its ring
 * was shielded: it is not inherited, and has its page. */
static uint32_t connections, shielded[MEMLODE_RING_RINGS];

static bool is_shielded(uint64_t slot) { return shielded[slot] == connections; }

MEMLODE_HIDDEN void memlode_make_canary(void) {
  if (!memlode_process.canary) {
    long page = memlode_call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!memlode_failed(page) && memlode_call(SYS_madvise, page, 4096, MADV_WIPEONFORK) == 0)
      memlode_process.canary = (_Atomic uint32_t *)page;
    else
      memlode_process.canary = &spare_canary; /* an old kernel: calls that are seen alone must do */
  }
  atomic_store_explicit(memlode_process.canary, 1, memory_order_relaxed);
}

/* Returns whether stacks may grow as far as a ring is long. */
static bool can_grow(void) {
  struct rlimit limit = {0, 0};
  return !memlode_failed(memlode_call(SYS_prlimit64, 0, RLIMIT_STACK, 0, &limit)) &&
         limit.rlim_cur >= 2 * (uint64_t)MEMLODE_REGION_BYTES;
}

MEMLODE_HIDDEN void memlode_choose_area(void) {
  const size_t bytes = MEMLODE_REGION_BYTES;
  connections++;
  area = 0;
  if (!can_grow())
    return;
  for (int i = 0; i < AREAS && !area; i++) {
    uintptr_t start = first_area + (uintptr_t)i * area_bytes;
    long place =
        memlode_call(SYS_mmap, start, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memlode_failed(place))
      return;
    memlode_call(SYS_munmap, place, bytes);
    if ((uintptr_t)place == start)
      area = start;
  }
}

MEMLODE_HIDDEN uintptr_t memlode_place_of(uint64_t slot) { return area ? area + slot * STRIDE_BYTES : 0; }

MEMLODE_HIDDEN void memlode_shield(struct memlode_ring_header *ring, uint64_t slot) {
  uintptr_t start = (uintptr_t)ring;
  const size_t bytes = MEMLODE_REGION_BYTES;
  if (is_shielded(slot))
    return;
  /* In the pad, but not at its beginning: where pages are larger than this one, the kernel refuses. */
  uintptr_t page = start + bytes - MEMLODE_RING_CHUNK_BYTES + PAGE_BYTES;
  /* Wiped, as what it grows by: a child of the child finds its own words there, and no others. */
  if (area && start == memlode_place_of(slot) && memlode_process.canary != &spare_canary &&
      !memlode_failed(memlode_call(SYS_mmap, page, PAGE_BYTES, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0)) &&
      !memlode_failed(memlode_call(SYS_madvise, page, PAGE_BYTES, MADV_WIPEONFORK)) &&
      !memlode_failed(memlode_call(SYS_madvise, start, page - start, MADV_DONTFORK)))
    shielded[slot] = connections;
}

MEMLODE_HIDDEN void memlode_leave_behind(void) {
  for (uint32_t slot = 0; slot < memlode_process.rings; slot++) {
    struct memlode_ring_header *ring = memlode_rings[slot];
    memlode_rings[slot] = NULL;
    if (ring && !is_shielded(slot)) /* it is the parent's as yet */
      memlode_call(SYS_mmap, ring, (size_t)MEMLODE_REGION_BYTES, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  }
  left = area;
}

MEMLODE_HIDDEN const uint64_t *memlode_left_behind(const uint64_t *cursor) {
  if (!left || (uintptr_t)cursor - left >= area_bytes)
    return NULL;
  uintptr_t into = ((uintptr_t)cursor - left) % STRIDE_BYTES;
  if (into < MEMLODE_RING_CHUNK_BYTES || into >= MEMLODE_REGION_BYTES)
    return NULL;
  /* A chunk and its slack; a cursor behind the last word of a slack is at the beginning of the next chunk. */
  size_t used = (into - MEMLODE_RING_CHUNK_BYTES) % MEMLODE_PAIR_BYTES / sizeof(uint64_t);
  const uint64_t *word = cursor - used;
  while (word < cursor && !*word)
    word++;
  return word < cursor ? word : NULL;
}
