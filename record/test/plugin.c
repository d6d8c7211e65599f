/* A shared library for host.c. With -DSWAP another file takes its place while it is being loaded: the
 * one beside it, with ".new" to its name. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "emit.h"

void work(uint64_t first, uint64_t count) { emit_loads(first, count); }

#ifdef SWAP
__attribute__((constructor(101))) static void swap(void) {
  Dl_info self;
  char other[4096];
  if (dladdr((void *)swap, &self) && snprintf(other, sizeof other, "%s.new", self.dli_fname) > 0)
    rename(other, self.dli_fname);
}
#endif
