/* Blocks that functions of libc make or end, one by one: instrumented code calls these beside
 * the functions, with the anchors of its segments for them: a time stamp, and a block that comes
 * or goes. `inner` is that of the blocks that the first one leads to. `own` is not NULL if the
 * program has defined the function itself: then it records what it does, and nothing is said
 * here.
 *
 * Nothing is read that the function has not just written, or is about to read. */
#include "runtime.h"

#include <bits/types/struct_FILE.h>
#include <dirent.h>
#include <glob.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <wordexp.h>

#define MEMLODE_REPORT(name) MEMLODE_EXPORT void __memlode_block_##name

static uint64_t number(const void *at) { return (uint64_t)(uintptr_t)at; }

static void made(const void *anchor, const void *base, uint64_t bytes) {
  if (anchor && base)
    __memlode_dormant_2(number(anchor), number(base), bytes);
}

static void made_string(const void *anchor, const char *s) {
  made(anchor, s, __memlode_extent_string(NULL, s, UINT64_MAX));
}

static void ended(const void *anchor, const void *base) {
  if (anchor)
    __memlode_dormant_1(number(anchor), number(base));
}

/* The word at a place, where there is one, in front of a call that may change it. */
MEMLODE_EXPORT uint64_t __memlode_extent_word(const uint64_t *at) { return at ? *at : 0; }

/* A string that the function returns, unless it was given a place for it. */
MEMLODE_REPORT(string)(const void *own, const void *anchor, const char *s, const void *given) {
  if (!own && !given)
    made_string(anchor, s);
}

MEMLODE_REPORT(wide)(const void *own, const void *anchor, const uint32_t *s) {
  if (!own)
    made(anchor, s, __memlode_extent_string_wide(NULL, s, UINT64_MAX));
}

/* A string of so many characters, as `asprintf` makes it. */
MEMLODE_REPORT(printed)(const void *own, const void *anchor, char *const *s, int64_t length) {
  if (!own && length >= 0)
    made(anchor, *s, (uint64_t)length + 1);
}

MEMLODE_REPORT(sized)(const void *own, const void *anchor, void *const *base, const size_t *bytes,
                      int64_t status) {
  if (!own && status == 0)
    made(anchor, *base, *bytes);
}

/* A block that was there before and may have grown, as that of `getline`. */
MEMLODE_REPORT(resized)(const void *own, const void *anchor, void *const *base, const size_t *bytes,
                        uint64_t base_before, uint64_t bytes_before) {
  if (own || !anchor || !base || !bytes || (number(*base) == base_before && *bytes == bytes_before))
    return;
  __memlode_dormant_3(number(anchor), number(*base), *base ? *bytes : 0, base_before);
}

MEMLODE_REPORT(entries)(const void *own, const void *anchor, const void *inner, struct dirent **const *list,
                        int64_t count) {
  if (own || count < 0 || !*list)
    return;
  made(anchor, (const void *)*list, (uint64_t)count * sizeof **list);
  for (int64_t i = 0; i < count; i++)
    made(inner, (*list)[i], (*list)[i]->d_reclen);
}

static void made_words(const void *anchor, const void *inner, char *const *words, size_t first,
                       size_t count) {
  made(anchor, (const void *)words, (first + count + 1) * sizeof *words);
  for (size_t i = first; words && i < first + count; i++)
    made_string(inner, words[i]);
}

static void ended_words(const void *anchor, char *const *words, size_t first, size_t count) {
  for (size_t i = first; words && i < first + count; i++)
    ended(anchor, words[i]);
  ended(anchor, (const void *)words);
}

/* The second argument leads to the array in the structure that the function fills. */
MEMLODE_REPORT(paths)(const void *own, const void *anchor, const void *inner, char **const *array,
                      const glob_t *all, int64_t status) {
  (void)array;
  if (!own && status == 0)
    made_words(anchor, inner, all->gl_pathv, all->gl_offs, all->gl_pathc);
}

MEMLODE_REPORT(paths_end)(const void *own, const void *anchor, const glob_t *all) {
  if (!own && all)
    ended_words(anchor, all->gl_pathv, all->gl_offs, all->gl_pathc);
}

MEMLODE_REPORT(words)(const void *own, const void *anchor, const void *inner, char **const *array,
                      const wordexp_t *all, int64_t status) {
  (void)array;
  if (!own && status == 0)
    made_words(anchor, inner, all->we_wordv, all->we_offs, all->we_wordc);
}

MEMLODE_REPORT(words_end)(const void *own, const void *anchor, const wordexp_t *all) {
  if (!own && all)
    ended_words(anchor, all->we_wordv, all->we_offs, all->we_wordc);
}

MEMLODE_REPORT(addresses)(const void *own, const void *anchor, const void *inner,
                          struct addrinfo *const *list, int64_t status) {
  if (own || status != 0)
    return;
  for (const struct addrinfo *at = *list; at; at = at->ai_next) {
    made(anchor, at, sizeof *at + at->ai_addrlen);
    if (at->ai_canonname)
      made_string(inner, at->ai_canonname);
  }
}

MEMLODE_REPORT(addresses_end)(const void *own, const void *anchor, const struct addrinfo *list) {
  for (; !own && list; list = list->ai_next) {
    if (list->ai_canonname)
      ended(anchor, list->ai_canonname);
    ended(anchor, list);
  }
}

/* Ends with an entry that has no name. */
MEMLODE_REPORT(interfaces)(const void *own, const void *anchor, const void *inner,
                           const struct if_nameindex *list) {
  if (own || !list)
    return;
  size_t count = 0;
  for (; list[count].if_name; count++)
    made_string(inner, list[count].if_name);
  made(anchor, list, (count + 1) * sizeof *list);
}

MEMLODE_REPORT(interfaces_end)(const void *own, const void *anchor, const struct if_nameindex *list) {
  if (own || !list)
    return;
  for (const struct if_nameindex *at = list; at->if_name; at++)
    ended(anchor, at->if_name);
  ended(anchor, list);
}

static uint64_t further(uint64_t end, const void *at, uint64_t bytes) {
  return at && number(at) + bytes > end ? number(at) + bytes : end;
}

/* One block, which has all that the list leads to. */
MEMLODE_REPORT(own_addresses)(const void *own, const void *anchor, struct ifaddrs *const *list,
                              int64_t status) {
  if (own || status != 0 || !*list)
    return;
  uint64_t end = 0;
  for (const struct ifaddrs *at = *list; at; at = at->ifa_next) {
    end = further(end, at, sizeof *at);
    end = further(end, at->ifa_name, __memlode_extent_string(NULL, at->ifa_name, UINT64_MAX));
  }
  made(anchor, *list, end - number(*list));
}

/* One block: an array, and the strings behind it. */
MEMLODE_REPORT(symbols)(const void *own, const void *anchor, char *const *list, int64_t count) {
  if (own || !list)
    return;
  uint64_t end = number((const void *)(list + count));
  for (int64_t i = 0; i < count; i++)
    end = further(end, list[i], __memlode_extent_string(NULL, list[i], UINT64_MAX));
  made(anchor, (const void *)list, end - number((const void *)list));
}

/* A block that has nothing else that ends with it. */
MEMLODE_REPORT(end)(const void *own, const void *anchor, const void *base) {
  if (!own && base)
    ended(anchor, base);
}

/* Streams into memory (`open_memstream`): the block and its length are known when the stream is
 * flushed or closed. */
enum { STREAMS = 64, FREE = 0, TAKEN = 1 };

static struct memlode_memory_stream {
  _Atomic uint64_t file; /* FREE, TAKEN or the stream */
  uint64_t kind;         /* what libc knows the streams of this kind by */
  const void *anchor;
  void *const *base;
  const size_t *length;
  uint64_t unit;
  uint64_t known; /* the block that was told last */
  uint64_t known_bytes;
} streams[STREAMS];

static _Atomic uint32_t open_streams;

/* The table of functions that stands behind a stream: a stream that other code has closed may
 * have given its place to a file. */
static uint64_t kind_of(const struct _IO_FILE *file) { return *(const uint64_t *)(file + 1); }

static struct memlode_memory_stream *stream_of(const struct _IO_FILE *file) {
  if (!file || atomic_load_explicit(&open_streams, memory_order_relaxed) == 0)
    return NULL;
  for (unsigned i = 0; i < STREAMS; i++)
    if (atomic_load_explicit(&streams[i].file, memory_order_acquire) == number(file) &&
        streams[i].kind == kind_of(file))
      return &streams[i];
  return NULL;
}

static void opened(const void *anchor, const struct _IO_FILE *file, void *const *base, const size_t *length,
                   uint64_t unit) {
  if (!anchor || !file)
    return;
  for (unsigned i = 0; i < STREAMS; i++) {
    uint64_t place = number(file);
    bool is_ours = atomic_compare_exchange_strong(&streams[i].file, &place, TAKEN); /* closed by other code */
    if (!is_ours) {
      place = FREE;
      is_ours = atomic_compare_exchange_strong(&streams[i].file, &place, TAKEN);
      if (is_ours)
        atomic_fetch_add(&open_streams, 1);
    }
    if (!is_ours)
      continue;
    streams[i].kind = kind_of(file);
    streams[i].anchor = anchor;
    streams[i].base = base;
    streams[i].length = length;
    streams[i].unit = unit;
    streams[i].known = streams[i].known_bytes = 0;
    atomic_store_explicit(&streams[i].file, number(file), memory_order_release);
    return;
  }
}

MEMLODE_REPORT(stream)(const void *own, const void *anchor, void *const *base, const size_t *length,
                       const struct _IO_FILE *file) {
  if (!own)
    opened(anchor, file, base, length, sizeof(char));
}

MEMLODE_REPORT(wide_stream)(const void *own, const void *anchor, void *const *base, const size_t *length,
                            const struct _IO_FILE *file) {
  if (!own)
    opened(anchor, file, base, length, sizeof(uint32_t));
}

static void tell_stream(struct memlode_memory_stream *stream) {
  const uint64_t base = number(*stream->base), bytes = (*stream->length + 1) * stream->unit;
  if (base == stream->known && bytes == stream->known_bytes)
    return;
  __memlode_dormant_3(number(stream->anchor), base, bytes, stream->known);
  stream->known = base;
  stream->known_bytes = bytes;
}

MEMLODE_REPORT(flushed)(const void *own, const struct _IO_FILE *file) {
  struct memlode_memory_stream *stream = own ? NULL : stream_of(file);
  if (stream)
    tell_stream(stream);
}

/* In front of the call: behind it, another thread may have a stream at that place. */
MEMLODE_EXPORT struct memlode_memory_stream *__memlode_block_closing(const void *own,
                                                                     const struct _IO_FILE *file) {
  struct memlode_memory_stream *stream = own ? NULL : stream_of(file);
  if (stream)
    atomic_store_explicit(&stream->file, TAKEN, memory_order_relaxed);
  return stream;
}

MEMLODE_REPORT(closed)(struct memlode_memory_stream *stream) {
  if (!stream)
    return;
  tell_stream(stream);
  atomic_store_explicit(&stream->file, FREE, memory_order_release);
  atomic_fetch_sub(&open_streams, 1);
}
