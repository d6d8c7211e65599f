// An allocator that knows which blocks there are, by no help of the pass, for programs that say themselves
// which blocks they were given (own_malloc.h).
#include "own_malloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t);
void *__libc_realloc(void *, size_t);
void __libc_free(void *);

enum { MOST = 1 << 12 };
static struct block {
  void *base;
  size_t bytes;
} blocks[MOST];

static struct block *at(const void *base) {
  for (struct block *b = blocks; b < blocks + MOST; b++)
    if (b->base == base)
      return b;
  fprintf(stderr, "no block at %p\n", base);
  _Exit(1);
}

static void *known(void *base, size_t bytes) {
  if (base)
    *at(NULL) = (struct block){base, bytes};
  return base;
}

void *malloc(size_t bytes) { return known(__libc_malloc(bytes), bytes); }

void *calloc(size_t count, size_t each) {
  void *base = malloc(count * each);
  return base ? memset(base, 0, count * each) : NULL;
}

void *realloc(void *base, size_t bytes) {
  if (base)
    at(base)->base = NULL;
  return known(__libc_realloc(base, bytes), bytes);
}

void free(void *base) {
  if (base)
    at(base)->base = NULL;
  __libc_free(base);
}

void given(const void *base, size_t used) { printf("own given %p %zu %zu\n", base, used, at(base)->bytes); }
void gone(const void *base) { printf("own gone %p\n", base); }
