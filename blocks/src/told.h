// Blocks of libraries, for the recorder.
#pragma once

#include <stddef.h>

// The variable before what `LD_PRELOAD` would be without this library: with a colon in front if there is any.
#define MEMLODE_BLOCKS_RECORD "MEMLODE_BLOCKS=record"

// Recorded: a block that was taken or given back.
void *a_library(void *block, size_t bytes);
void *a_library_ends(void *block);

// The allocator, as the pass sees it (told.alloc).
void *memlode_library_made(void *block, size_t bytes);
void memlode_library_ended(void *block);

// An address in the image that has the table of told.c.
extern const char memlode_library_table[];
