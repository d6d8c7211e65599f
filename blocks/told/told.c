// Compiled with memlode: what is recorded of a library's block stands at these lines. Both return a
// pointer of no type, so objects are named by the line that called into the library.
#include "../src/told.h"

const char memlode_library_table[] = "told.c";

void *a_library(void *block, size_t bytes) { return memlode_library_made(block, bytes); }

void *a_library_ends(void *block) {
  memlode_library_ended(block);
  return block;
}
