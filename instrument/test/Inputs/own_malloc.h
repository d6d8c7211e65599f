// What a program says of its blocks.
#ifndef OWN_MALLOC_H
#define OWN_MALLOC_H
#include <stddef.h>

// It was given a block, and uses so many bytes of it.
void given(const void *base, size_t used);
// It is about to end one.
void gone(const void *base);

#endif
