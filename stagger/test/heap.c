// Uses a heap in every way there is, and checks that blocks keep what is in them, are as long and as aligned
// as promised, and that large ones of equal size do not begin alike. Preloads nothing itself: run with
// libmemlode_stagger.so and, for control, without
// (`control` as argument), where large blocks do begin alike.
#include "memlode_stagger.h"
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                                          \
  do {                                                                                                       \
    if (!(what)) {                                                                                           \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                                     \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

enum { BLOCKS = 200, ROUNDS = 20000, LARGE = 1 << 20 };

// Numbers that a seed determines.
static unsigned next(unsigned *state) {
  *state = *state * 1103515245U + 12345U;
  return *state >> 8;
}

struct block {
  unsigned char *start;
  size_t bytes;
  unsigned char mark;
};

static size_t some_size(unsigned *state) {
  size_t small = next(state) % 3000;
  return next(state) % 3 == 0 ? small + (size_t)(next(state) % 400000) : small + 1;
}

static void fill(struct block *block, unsigned char mark) {
  block->mark = mark;
  memset(block->start, mark, block->bytes);
}

static void check(const struct block *block, size_t bytes) {
  for (size_t at = 0; at < bytes; at += at < 64 || at + 65 > bytes ? 1 : 61)
    CHECK(block->start[at] == block->mark);
}

static void renew(struct block *block, unsigned *state) {
  size_t bytes = some_size(state);
  size_t align = (size_t)16 << next(state) % 10;
  void *given = NULL;
  switch (next(state) % 6) {
  case 0:
    given = malloc(bytes);
    align = 16;
    break;
  case 1:
    given = calloc(1, bytes);
    align = 16;
    for (size_t at = 0; at < bytes; at += 97)
      CHECK(((unsigned char *)given)[at] == 0);
    break;
  case 2:
    given = aligned_alloc(align, bytes);
    break;
  case 3:
    given = memalign(align, bytes);
    break;
  case 4:
    CHECK(posix_memalign(&given, align, bytes) == 0);
    break;
  default:
    given = valloc(bytes);
    align = 4096;
  }
  CHECK(given != NULL && (uintptr_t)given % align == 0);
  CHECK(malloc_usable_size(given) >= bytes);
  *block = (struct block){.start = given, .bytes = bytes};
}

// Allocates, resizes and frees at random.
static void *work(void *seed) {
  unsigned state = (unsigned)(uintptr_t)seed;
  struct block blocks[BLOCKS] = {{NULL, 0, 0}};
  for (int round = 0; round < ROUNDS; round++) {
    struct block *block = &blocks[next(&state) % BLOCKS];
    if (block->start == NULL) {
      renew(block, &state);
      fill(block, (unsigned char)round);
      continue;
    }
    check(block, block->bytes);
    if (next(&state) % 3 == 0) {
      size_t bytes = some_size(&state);
      unsigned char *given = realloc(block->start, bytes);
      CHECK(given != NULL);
      block->start = given;
      check(block, bytes < block->bytes ? bytes : block->bytes);
      block->bytes = bytes;
      fill(block, (unsigned char)(round + 1));
    } else {
      free(block->start);
      block->start = NULL;
    }
  }
  for (int at = 0; at < BLOCKS; at++)
    free(blocks[at].start);
  return NULL;
}

// Blocks of one size that agree in the low 12 bits with the one before.
static int alike(size_t align) {
  int count = 0;
  char *before = NULL;
  for (int at = 0; at < 16; at++) {
    char *given = align == 0 ? malloc(LARGE) : aligned_alloc(align, LARGE);
    CHECK(given != NULL);
    given[0] = 1;
    uintptr_t bits = align < 4096 ? 4096 : LARGE;
    count += before != NULL && ((uintptr_t)given - (uintptr_t)before) % bits == 0;
    before = given;
  }
  return count;
}

static void check_header(void) {
  char *blocks[64];
  for (size_t at = 0; at < 64; at++) {
    blocks[at] = memlode_aligned_alloc(128, 10000, at);
    CHECK(blocks[at] != NULL && (uintptr_t)blocks[at] % 128 == 0);
    memset(blocks[at], (int)at, 10000);
  }
  for (size_t at = 0; at < 64; at++) {
    CHECK(blocks[at][0] == (char)at && blocks[at][9999] == (char)at);
    if (at > 0 && at < 32)
      CHECK(!memlode_aliases(blocks[at - 1], blocks[at], 64));
    memlode_aligned_free(blocks[at]);
  }
  memlode_aligned_free(NULL);
  char *page = memlode_aligned_alloc(4096, 100, 3);
  CHECK(page != NULL && (uintptr_t)page % 4096 == 0);
  memlode_aligned_free(page);
  static char two[3 * 4096];
  CHECK(memlode_aliases(two, two + 4096, 64) && memlode_aliases(two, two + 4096 + 63, 64));
  CHECK(!memlode_aliases(two, two + 4096 + 64, 64) && !memlode_aliases(two, two, 64));
  CHECK(!memlode_aliases(two + 8, two + 4096, 64));
}

int main(int argc, char **argv) {
  int plain = alike(0);
  int lines = alike(64);
  int pages = alike(4096);
  if (argc > 1 && strcmp(argv[1], "control") == 0)
    CHECK(plain > 10);
  else
    CHECK(plain == 0 && lines == 0 && pages == 0);
  check_header();
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  for (uintptr_t at = 0; at < THREADS; at++)
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a number on its way through a pointer.
    CHECK(pthread_create(&threads[at], NULL, work, (void *)(at + 1)) == 0);
  // Children of a program whose threads are in the middle of it.
  for (int child = 0; child < 20; child++) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
      free(malloc(LARGE));
      _exit(0);
    }
    int status = 1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  }
  for (int at = 0; at < THREADS; at++)
    CHECK(pthread_join(threads[at], NULL) == 0);
  CHECK(malloc(SIZE_MAX / 2) == NULL && calloc(SIZE_MAX / 4, 8) == NULL);
  void *kept = malloc(LARGE);
  CHECK(kept != NULL && realloc(kept, SIZE_MAX - 5000) == NULL);
  free(kept);
  return 0;
}
