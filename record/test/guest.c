/* Things that a program may do to us without meaning it. Usage: guest WHAT; records loads of 1, 2, ..., 1000.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emit.h"

static unsigned long heap_calls;
static int counting;

/* Every way into the allocator, counted while `counting`. The real one is glibc's. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
void *malloc(size_t n) { return heap_calls += counting, __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return heap_calls += counting, __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return heap_calls += counting, __libc_realloc(p, n); }
void free(void *p) { heap_calls += counting, __libc_free(p); }

static int descriptors(void) {
  DIR *open = opendir("/proc/self/fd");
  int count = 0;
  if (!open)
    return -1;
  while (readdir(open))
    count++;
  closedir(open);
  return count;
}

/* Loads of first, first + 1, ... as a loop records them: with a cursor of its own. */
static uint64_t *put_loads(uint64_t *cursor, uint64_t first, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    *cursor++ = (uint64_t)(uintptr_t)&memlode_test_anchors[LOAD];
    *cursor++ = first + i;
  }
  return cursor;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "heap")) {
    int before = descriptors();
    errno = 77;
    counting = 1;
    emit_loads(1, 1000);
    for (int i = 0; i < 20; i++) {
      uint64_t words[64];
      for (int k = 0; k < 64; k++)
        words[k] = (uint64_t)i * 64 + (uint64_t)k;
      for (int k = 0; k < 1000; k++)
        emit(BLOCK, 64, words);
    }
    __memlode_module_unload(memlode_test_anchors);
    __memlode_module_load(memlode_test_anchors);
    counting = 0;
    int kept = errno == 77;
    printf("heap calls %lu, errno %s, descriptors %+d\n", heap_calls, kept ? "kept" : "lost",
           descriptors() - before);
    return 0;
  }
  if (!strcmp(what, "closefrom")) {
    emit_loads(1, 500);
    closefrom(3);
    emit_loads(501, 500);
    return 0;
  }
  if (!strcmp(what, "clearenv")) {
    clearenv();
    emit_loads(1, 1000);
    return 0;
  }
  if (!strcmp(what, "glimpse")) {
    /* A loop has seen that recording is off. When that is looked into it is on again. */
    emit_loads(1, 500);
    uint64_t *cursor = put_loads(__memlode_cursor, 501, 250);
    cursor = __memlode_switch(cursor);
    __memlode_cursor = put_loads(cursor, 751, 250);
    return 0;
  }
  if (!strcmp(what, "scribble")) {
    emit_loads(1, 1000);
    /* All over its ring's header, the process's header, and the words of the first chunk, while the collector
     * reads them. */
    uintptr_t chunk = (uintptr_t)__memlode_cursor & ~(uintptr_t)(MEMLODE_RING_CHUNK_BYTES - 1);
    uint32_t *ring = (uint32_t *)(chunk - MEMLODE_RING_CHUNK_BYTES);
    uint32_t *process = (uint32_t *)(uintptr_t)__memlode_control;
    unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], 0, 10) : 1;
    for (int i = 0; i < 2000000; i++) {
      seed = seed * 1664525 + 1013904223;
      unsigned at = seed >> 8;
      switch (seed >> 6 & 3) {
      case 0:
        process[at % (sizeof(struct memlode_process_header) / 4)] = seed;
        break;
      case 1:
        ((uint32_t *)chunk)[at % (MEMLODE_RING_CHUNK_BYTES / 4)] = seed;
        break;
      default: /* small numbers, too: they get further */
        ring[at % (sizeof(struct memlode_ring_header) / 4)] = seed & 1 ? seed : seed >> 27;
      }
    }
    return 0;
  }
  return 2;
}
