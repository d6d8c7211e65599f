// Notes of blocks: what the parts of the library tell each other.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memlode_format.h"

// Blocks of fewer bytes are not noted; 0 until that is decided.
extern _Atomic size_t memlode_blocks_least;

// Opens the memory that `memlode sample` gave this program, if it did and libc is far enough to say
// so.
void memlode_blocks_begin(void);

// Whether anybody is to know.
bool memlode_blocks_are_noted(void);

// The shared memory, once it is open.
struct memlode_block_notes_header *memlode_blocks_header(void);
struct memlode_block_path *memlode_blocks_paths(void);

// Notes that a block or mapping was taken or given back, and who asked: `slot` is the place in the
// stack where the allocator's return address is. Keeps errno.
void memlode_blocks_note(uint16_t kind, const void *address, size_t bytes, void *const *slot);

// The number of the calls that led to a return address; MEMLODE_BLOCK_NOTE_NO_PATH if there is no
// room for more.
uint16_t memlode_blocks_path(void *const *slot);
