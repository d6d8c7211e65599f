/* Generated from format/trace.toml by `cargo xtask gen`. Do not edit. */
#ifndef MEMLODE_FORMAT_H
#define MEMLODE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define MEMLODE_STATIC_ASSERT static_assert
#else
#define MEMLODE_STATIC_ASSERT _Static_assert
#endif

// Versions. A change that an older reader would misread raises one of them and adds a golden file.
#define MEMLODE_VERSION_TRACE 4 // trace directory: manifest, chunk header, payload layout; 2: chunks of dormant threads; 3: words as heads and tails; 4: sections
#define MEMLODE_VERSION_SAMPLED_TRACE 5 // the same of a trace that holds samples: an older reader would take them for all accesses
#define MEMLODE_VERSION_TABLE 2 // site table (one per translation unit) inside an ELF image; 2: sections
#define MEMLODE_VERSION_WIRE 2 // a trace sent through a socket; 2: the receiver, too, proves that it knows the token
#define MEMLODE_VERSION_BLOCK_NOTES 2 // memory that a sampled program notes its blocks in
#define MEMLODE_VERSION_RING 3 // shared memory between a traced program and the collector; 2: chunks of dormant threads; 3: `dormant` as 64 bits

// First four bytes, little endian, of each binary object (read as ASCII in the file).
#define MEMLODE_MAGIC_CHUNK 0x4b434c4d // "MLCK": one chunk of a thread's stream
#define MEMLODE_MAGIC_MODULE 0x444d4c4d // "MLMD": one module file
#define MEMLODE_MAGIC_TABLE 0x42544c4d // "MLTB": one translation unit's site table
#define MEMLODE_MAGIC_RING 0x47524c4d // "MLRG": a process's shared memory
#define MEMLODE_MAGIC_WIRE 0x52574c4d // "MLWR": a message of, or to, a receiver of traces
#define MEMLODE_MAGIC_MESSAGE 0x534d4c4d // "MLMS": one message on the collector's socket
#define MEMLODE_MAGIC_BLOCK_NOTES 0x4e424c4d // "MLBN": memory in which a program notes its blocks

// ELF sections of an instrumented image, never touched at run time.
#define MEMLODE_SECTION_ANCHORS "memlode_seg" // one 8-byte anchor per segment; a header word is the address of one
#define MEMLODE_SECTION_TABLES "memlode_tab" // the site tables, one per translation unit
#define MEMLODE_SECTION_FUNCTIONS "memlode_fun" // where each function that the pass has looked at is (SPEC.md §2.8)
#define MEMLODE_SECTION_FAR_FUNCTIONS "memlode_fun_far" // those of the medium and large code models

// The contents of a section of a site table (SPEC.md §5.1). Readers skip those that they do not know.
#define MEMLODE_TABLE_SECTION_TYPES 1 // the layouts of types (SPEC.md §2.3)
#define MEMLODE_TABLE_SECTION_INSTRUCTIONS 2 // about how many lie between accesses (SPEC.md §2.4)
#define MEMLODE_TABLE_SECTION_FEEDS 3 // the loads on which addresses and stored data depend (SPEC.md §2.4)
#define MEMLODE_TABLE_SECTION_LEFT_OUT 4 // accesses of the unit that are not recorded, by reason
#define MEMLODE_TABLE_SECTION_ASKED 5 // the user's rules and names of allocators, and whether the unit has matches for them
#define MEMLODE_TABLE_SECTION_BRANCHES 6 // the loads on which the branches behind an access depend (SPEC.md §2.4)
#define MEMLODE_TABLE_SECTION_CALLS 7 // which calls may come behind a segment (SPEC.md §2.5)
#define MEMLODE_TABLE_SECTION_EARLIER 8 // which of the values in feeds and branches are of the iteration before (SPEC.md §2.4)
#define MEMLODE_TABLE_SECTION_UNRECORDED 9 // accesses that are executed with a segment and not recorded (SPEC.md §2.6)
#define MEMLODE_TABLE_SECTION_SOURCES 10 // where the unit was compiled, and checksums of its files (SPEC.md §2.7)
#define MEMLODE_TABLE_SECTION_UNTYPED 11 // functions that return memory of no type (SPEC.md §2.9)
#define MEMLODE_TABLE_SECTION_PRIVATE 0x10000 // from here on: for trials and tests, and never given a meaning

// Facts of a call (SPEC.md §2.5).
#define MEMLODE_CALL_FLAG_EXACT 1 // it enters the function that it names, or none

// The contents of a section of a module file (SPEC.md §5.1). Readers skip those that they do not know.
#define MEMLODE_MODULE_SECTION_FOREIGN 1 // functions of the image that memlode did not compile (SPEC.md §4.2)
#define MEMLODE_MODULE_SECTION_SAMPLED 2 // instructions of an image that was sampled (SPEC.md §4.5)
#define MEMLODE_MODULE_SECTION_PRIVATE 0x10000 // from here on: for trials and tests, and never given a meaning

// Properties of the section `foreign` of a module file, and of a function in it (bit sets).
#define MEMLODE_FOREIGN_FLAG_LOCAL 1 // a function whose name is known only in its own unit
#define MEMLODE_FOREIGN_FLAG_LIBRARIES 2 // of the section: the program is linked statically, so the C library is among its functions

// Properties of an image that was sampled (bit set).
#define MEMLODE_SAMPLED_FLAG_DEBUG 1 // it has debug information
#define MEMLODE_SAMPLED_FLAG_UNREAD 2 // its file could not be read; behind the flags: why

// Why the data of a sampled instruction has no type.
#define MEMLODE_UNTYPED_TYPED 0 // it has one, or a variable
#define MEMLODE_UNTYPED_NO_DEBUG_INFORMATION 1
#define MEMLODE_UNTYPED_NO_FUNCTION 2 // of none that debug information knows
#define MEMLODE_UNTYPED_NO_INSTRUCTION 3 // its bytes are none that is known
#define MEMLODE_UNTYPED_NO_MEMORY 4 // it touches none
#define MEMLODE_UNTYPED_UNKNOWN_POINTER 5 // no variable says what its register points to
#define MEMLODE_UNTYPED_UNTYPED_POINTER 6 // to something without a type: `void *`
#define MEMLODE_UNTYPED_FRAME 7 // the frame, where no variable lies
#define MEMLODE_UNTYPED_OTHER_MEMORY 8 // of the thread's own, or that of which vectors have the addresses
#define MEMLODE_UNTYPED_STATIC_MEMORY 9 // where no variable lies
#define MEMLODE_UNTYPED_STACK 10 // a register or return address that is saved or restored

// Properties of a block in the section `blocks` of a chunk (bit set).
#define MEMLODE_SAMPLED_BLOCK_FLAG_MAPPED 1 // it was mapped, and is no block of the heap

// The contents of a section of a chunk (SPEC.md §5.1). Readers skip those that they do not know.
#define MEMLODE_CHUNK_SECTION_SAMPLES 1 // what only samples have: columns (SPEC.md §4.5)
#define MEMLODE_CHUNK_SECTION_CALL_PATHS 2 // where functions were called (SPEC.md §4.5)
#define MEMLODE_CHUNK_SECTION_BLOCKS 3 // blocks of memory that samples lie in (SPEC.md §4.5)
#define MEMLODE_CHUNK_SECTION_PRIVATE 0x10000 // from here on: for trials and tests, and never given a meaning

// A column of the section `samples` of a chunk: a number for each sample, 0 if it is not known, else 1 more than the value.
#define MEMLODE_SAMPLE_COLUMN_WEIGHT 1 // events, or nanoseconds, that the sample stands for
#define MEMLODE_SAMPLE_COLUMN_ADDRESS_KNOWN 2 // 0 if the access's address is not known; the address of the access is 0 then
#define MEMLODE_SAMPLE_COLUMN_ON_STACK 3 // 1 if the address lies in the thread's stack
#define MEMLODE_SAMPLE_COLUMN_LATENCY 4 // cycles that the access took
#define MEMLODE_SAMPLE_COLUMN_SOURCE 5 // where the data came from: the kernel's perf_mem_data_src
#define MEMLODE_SAMPLE_COLUMN_CPU 6 // processor
#define MEMLODE_SAMPLE_COLUMN_PAGE_BYTES 7 // size of the data's page
#define MEMLODE_SAMPLE_COLUMN_CALL_PATH 8 // index into the section `call_paths`
#define MEMLODE_SAMPLE_COLUMN_BLOCK 9 // index into the section `blocks`
#define MEMLODE_SAMPLE_COLUMN_PRIVATE 0x10000 // from here on: for trials and tests, and never given a meaning

// A thread's stream: 8-byte words.
#define MEMLODE_STREAM_WORD_BYTES 8
#define MEMLODE_STREAM_ADDRESS_BITS 48 // a header word has its upper 16 bits clear; other values are reserved
#define MEMLODE_STREAM_ANCHOR_BYTES 8
#define MEMLODE_STREAM_MAX_SEGMENT_WORDS 4096 // words behind a header; a longer segment is split by the pass
#define MEMLODE_STREAM_UNKNOWN_HANDLE 1 // object of a create whose handle lay in memory that the new thread may have freed

// The event that one step of a segment records. Word operands follow the header in the order of the ops.
#define MEMLODE_OP_ACCESS 0 // site, address
#define MEMLODE_OP_RANGE 1 // site, address, length: memset, and each side of memcpy or memmove
#define MEMLODE_OP_MASKED 2 // site, lanes, address; one mask word: lane i is at address + i * bytes
#define MEMLODE_OP_GATHER 3 // site, lanes; one address word a lane, then one mask word
#define MEMLODE_OP_DERIVED 4 // site, segment, word, distance: an access at a distance from a word of an earlier segment
#define MEMLODE_OP_REPEAT 5 // one word: the number of iterations; the rest of the segment are the strides of one iteration
#define MEMLODE_OP_STRIDE 6 // site, address, step: an access, its address a step further each time
#define MEMLODE_OP_ENTER 16 // one word: address of the return-address slot (the frame's identity)
#define MEMLODE_OP_EXIT 17 // no word
#define MEMLODE_OP_RESUME 18 // one word, as enter: control came back by unwinding or longjmp
#define MEMLODE_OP_ALLOC 32 // site; words base, bytes
#define MEMLODE_OP_ALLOC_ARRAY 33 // site; words base, count, element bytes
#define MEMLODE_OP_REALLOC 34 // site; words new base, bytes, old base
#define MEMLODE_OP_FREE 35 // site; word base
#define MEMLODE_OP_UNMAP 36 // site; words base, bytes
#define MEMLODE_OP_VALUE 48 // words: the value that the access before moved, 8 bytes a word; for an update the old value, then the new one
#define MEMLODE_OP_STAMP 49 // one word: time stamp counter, read after the thread's acquisitions
#define MEMLODE_OP_SYNC 50 // sync, address of its object; one word, the time stamp counter: read behind an acquisition, in front of a release

// Events that order threads through objects. Odd ones release the thread's earlier accesses, even ones acquire those released through the object.
#define MEMLODE_SYNC_ACQUIRE 0 // an atomic operation that acquires
#define MEMLODE_SYNC_RELEASE 1 // an atomic operation that releases
#define MEMLODE_SYNC_LOCK 2 // a mutex or another lock was taken
#define MEMLODE_SYNC_UNLOCK 3 // and is given back
#define MEMLODE_SYNC_WAIT 4 // the thread waited for a condition variable, a semaphore, or an action that is done once
#define MEMLODE_SYNC_SIGNAL 5 // and a waiting thread may go on
#define MEMLODE_SYNC_LEAVE 6 // a barrier was left
#define MEMLODE_SYNC_ARRIVE 7 // and somebody is there
#define MEMLODE_SYNC_JOIN 8 // a thread has ended; the object is its pthread_t
#define MEMLODE_SYNC_CREATE 9 // and one was created, just before the stamp

// The effect of a site on memory.
#define MEMLODE_KIND_LOAD 0
#define MEMLODE_KIND_STORE 1
#define MEMLODE_KIND_UPDATE 2 // atomic read-modify-write
#define MEMLODE_KIND_ALLOC 3
#define MEMLODE_KIND_FREE 4

// The evidence for a site's variable, type and member, best first.
#define MEMLODE_EVIDENCE_NONE 0
#define MEMLODE_EVIDENCE_SOURCE 1 // remembered from the unoptimised module, same scope, line, column and direction
#define MEMLODE_EVIDENCE_DEBUG 2 // walk over debug records on the optimised module
#define MEMLODE_EVIDENCE_TBAA 3 // type-based alias tag alone
#define MEMLODE_EVIDENCE_PARTIAL 4 // a type, a variable or a line only

// Properties of a site (bit set).
#define MEMLODE_FLAG_APPROXIMATE 1 // the line is that of the nearest instruction that had one, or the access is a library function's
#define MEMLODE_FLAG_ATOMIC 2
#define MEMLODE_FLAG_VOLATILE 4
#define MEMLODE_FLAG_STACK 8 // the address is based on a stack slot of the function
#define MEMLODE_FLAG_GLOBAL 16 // the address is based on a global variable
#define MEMLODE_FLAG_VECTOR 32 // one access of a vector register
#define MEMLODE_FLAG_FLOAT 64 // its value is recorded and is a floating-point number
#define MEMLODE_FLAG_LOADED_ADDRESS 128 // the address comes out of a loaded value: an index, a pointer
#define MEMLODE_FLAG_CHASED 256 // and that out of one loaded the iteration before, as in a list; only with loaded_address
#define MEMLODE_FLAG_COMPUTED_ADDRESS 512 // the address comes out of arithmetic that does more than count, and of no loaded value
#define MEMLODE_FLAG_NON_TEMPORAL 1024 // the program bypasses the caches, as by a streaming store
#define MEMLODE_FLAG_ACQUIRE 2048 // atomic: later accesses see those before the release whose value it read
#define MEMLODE_FLAG_RELEASE 4096 // atomic: a thread that acquires its value sees the accesses before it
#define MEMLODE_FLAG_SEQUENTIAL 8192 // atomic: it is in the one order of all such accesses; a store empties the store buffer
#define MEMLODE_FLAG_FENCED 16384 // a full fence stands beside it, before the next access or behind the one before
#define MEMLODE_FLAG_PREFETCH 32768 // a load that only requests a line: nothing waits for it
#define MEMLODE_FLAG_POLL 65536 // in a loop that only waits for another thread: an iteration that changes nothing means nothing else
#define MEMLODE_FLAG_ADDS 131072 // it adds to its bytes, or is the load or the store of such an addition: nothing else uses the value

// The form of a type, in the section `types` of a site table.
#define MEMLODE_TYPE_FORM_SCALAR 0 // a type without members that is none of the others
#define MEMLODE_TYPE_FORM_POINTER 1 // or a reference
#define MEMLODE_TYPE_FORM_ENUMERATION 2
#define MEMLODE_TYPE_FORM_ARRAY 3 // behind the name: opt type of the elements; list of extents, 0 if one is not known
#define MEMLODE_TYPE_FORM_STRUCTURE 4 // behind the name: list of members; as of the three that follow
#define MEMLODE_TYPE_FORM_CLASS 5
#define MEMLODE_TYPE_FORM_UNION 6
#define MEMLODE_TYPE_FORM_VARIANTS 7 // one of several, selected by a discriminant: a part of a Rust enum
#define MEMLODE_TYPE_FORM_DESCRIPTOR 8 // of a Fortran array whose elements are elsewhere

// Properties of a type in the section `types` (bit set); readers ignore those they do not know.
#define MEMLODE_TYPE_FLAG_INCOMPLETE 1 // declared only: its members are not known
#define MEMLODE_TYPE_FLAG_WATCHED 2 // a function of the unit accesses one, so its uses of the members' addresses are known
#define MEMLODE_TYPE_FLAG_CAST 4 // only if watched: a pointer to one is used as one to another record, or the other way round

// The properties of a member of a type, in the section `types` of a site table.
#define MEMLODE_MEMBER_KIND_FIELD 0
#define MEMLODE_MEMBER_KIND_BASE 1 // a base class
#define MEMLODE_MEMBER_KIND_VIRTUAL_BASE 2 // a base class whose place is in the virtual table; its offset is 0
#define MEMLODE_MEMBER_KIND_VPTR 3 // the pointer to the virtual table
#define MEMLODE_MEMBER_KIND_DISCRIMINANT 4 // of variants: the member that selects one
#define MEMLODE_MEMBER_KIND_VARIANTS 5 // the variants of a record that has some
#define MEMLODE_MEMBER_KIND_VARIANT 6 // one of them; behind it: 1 and the value of the discriminant that means it, or 0

// Properties of a member of a type (bit set); readers ignore those they do not know.
#define MEMLODE_MEMBER_FLAG_BIT_FIELD 1
#define MEMLODE_MEMBER_FLAG_ESCAPES 2 // its address is passed to another function, stored, returned or converted to a number

// Properties of a translation unit's table (bit set); readers ignore those they do not know.
#define MEMLODE_TABLE_FLAG_FILTERED 1 // the user's filter left events out: not every access of the unit is recorded
#define MEMLODE_TABLE_FLAG_AS_WRITTEN 2 // recorded before optimisation: the accesses of the source, not those of the code that ran
#define MEMLODE_TABLE_FLAG_NAMELESS 4 // without -g, or with -g1: variables, types and members are not known

// Why something that touches memory is not recorded.
#define MEMLODE_LEFT_OUT_ASSEMBLY 0 // inline assembly that may touch more than its operands
#define MEMLODE_LEFT_OUT_BY_VALUE 1 // the write side of a by-value argument's copy
#define MEMLODE_LEFT_OUT_ADDRESS_SPACE 2 // another address space: %fs and %gs on x86
#define MEMLODE_LEFT_OUT_VECTOR 3 // a vector of more than 64 lanes under a mask, or of a length that is not known when compiling
#define MEMLODE_LEFT_OUT_INTRINSIC 4 // an operation of the processor that the pass does not know
#define MEMLODE_LEFT_OUT_ASSEMBLY_JUMP 5 // an assembly that jumps: the first records at its labels may come late
#define MEMLODE_LEFT_OUT_TAIL_CALL 6 // accesses of a library function behind a tail call
#define MEMLODE_LEFT_OUT_FUNCTION 7 // a whole function, naked or otherwise out of reach
#define MEMLODE_LEFT_OUT_FILTER 8 // left out by the user's filter
#define MEMLODE_LEFT_OUT_CALL 9 // a function of another unit: if no table knows it, memlode did not compile it

// Shared memory: one memfd per process, a process header and then ring regions.
#define MEMLODE_RING_CHUNK_BYTES 0x10000 // capacity before the room test fails
#define MEMLODE_RING_ROOM_BIT 0x10000 // set in a cursor that lies inside a chunk; clear in the slack behind it
#define MEMLODE_RING_CHUNKS 16 // chunks per ring; region = (2 * chunks + 2) * chunk_bytes
#define MEMLODE_RING_RINGS 4096 // ring slots per process
#define MEMLODE_RING_FIRST_RING_OFFSET 0x10000 // file offset of ring 0; ring i is one region further each
#define MEMLODE_RING_END_CUT_SHORT 1 // set in end[k]: the chunk was given up; its last segment may lack words
#define MEMLODE_RING_END_GAP 2 // set in end[k]: recording was switched off behind this chunk
#define MEMLODE_RING_END_DORMANT 4 // set in end[k]: recording was off in it; it holds allocations only
#define MEMLODE_RING_PATIENCE_MS 90000 // the default wait for a collector without a sign of life: longer than that for a receiver
#define MEMLODE_RING_SLOT_FREE 0
#define MEMLODE_RING_SLOT_CLAIMED 1 // the program is filling in the ring's header
#define MEMLODE_RING_SLOT_ACTIVE 2
#define MEMLODE_RING_SLOT_DRAINING 3 // the thread is gone; the collector has chunks to read

// Memory in which a program that `memlode sample` started notes its blocks: one memfd, with a header, a table of call paths, and a ring of notes.
#define MEMLODE_BLOCK_NOTES_PATHS 0xffff // entries of the table: open, the first place by bits 16 to 31 of the key
#define MEMLODE_BLOCK_NOTES_PATH_CALLS 24 // calls of a path, the innermost
#define MEMLODE_BLOCK_NOTES_FIRST_PATH_OFFSET 0x1000 // file offset of path 0
#define MEMLODE_BLOCK_NOTES_NOTES 0x40000 // notes in the ring
#define MEMLODE_BLOCK_NOTES_FIRST_NOTE_OFFSET 0xd01000 // file offset of note 0
#define MEMLODE_BLOCK_NOTES_BYTES 0x1701000 // length of all

// The kinds of notes of blocks.
#define MEMLODE_BLOCK_NOTE_TAKEN 0 // a block of the heap was taken
#define MEMLODE_BLOCK_NOTE_FREED 1 // and given back; its length is 0
#define MEMLODE_BLOCK_NOTE_MAPPED 2 // memory was mapped
#define MEMLODE_BLOCK_NOTE_UNMAPPED 3 // and unmapped
#define MEMLODE_BLOCK_NOTE_NO_PATH 0xffff // the path of a block whose calls found no room

// Why nothing is to be recorded (bit set): bits of a process header's `dormant`.
#define MEMLODE_OFF_NOBODY 1 // there is no collector; set by the program
#define MEMLODE_OFF_PACE 2 // between two bursts; set by the collector, as those that follow
#define MEMLODE_OFF_USER 4 // the user stopped it
#define MEMLODE_OFF_WINDOW 8 // before or behind the requested stretch
#define MEMLODE_OFF_REGION 16 // outside the requested regions; set by the program
#define MEMLODE_OFF_OVER 32 // it will not be on again: not even allocations matter

// Requests on the collector's SOCK_SEQPACKET Unix socket. One request a connection; a reply ends it.
#define MEMLODE_MESSAGE_HELLO 1 // reply carries the memfd
#define MEMLODE_MESSAGE_MODULE_LOAD 2 // reply after the module's table is known
#define MEMLODE_MESSAGE_MODULE_UNLOAD 3 // reply after everything recorded so far has been read
#define MEMLODE_MESSAGE_STATUS_OK 0
#define MEMLODE_MESSAGE_STATUS_REFUSED 1
#define MEMLODE_MESSAGE_STATUS_VERSION 2
#define MEMLODE_MESSAGE_PATH_BYTES 4096
#define MEMLODE_MESSAGE_BUILD_ID_BYTES 32

// Properties of a chunk (bit set).
#define MEMLODE_CHUNK_FLAG_AFTER_GAP 1 // recording had been off: accesses since the stream's chunk before are unknown, and so is the stack
#define MEMLODE_CHUNK_FLAG_DORMANT 2 // recording was off: the chunk has only allocations, without the stack

// A trace on its way to `memlode serve` (SPEC.md §6): what a wire_frame holds.
#define MEMLODE_WIRE_APPEND 0 // thread file a.b: payload at offset `at`, which is its end
#define MEMLODE_WIRE_APPEND_EVENTS 1 // events.ndjson, the same
#define MEMLODE_WIRE_PUT_MODULE 2 // module file a: a piece of it
#define MEMLODE_WIRE_PUT_MANIFEST 3 // manifest.json: a piece of it
#define MEMLODE_WIRE_ALIVE 4 // nothing happened lately
#define MEMLODE_WIRE_FINISH 5 // all has been sent; the reply is wire_status.ok once it is stored
#define MEMLODE_WIRE_APPEND_INDEX 6 // chunks.mlx, as append_events
#define MEMLODE_WIRE_LAST_PIECE 1 // flag of a put

// The answers of a receiver, in a wire_reply.
#define MEMLODE_WIRE_STATUS_OK 0
#define MEMLODE_WIRE_STATUS_REFUSED 1 // the payload is a sentence; the connection ends
#define MEMLODE_WIRE_STATUS_CHALLENGE 2 // the payload is a nonce of 32 bytes

// The ways to pack a chunk's payload.
#define MEMLODE_CODEC_STORED 0 // not packed
#define MEMLODE_CODEC_ZSTD 1 // one zstd frame

// Limits that a reader may rely on; a file beyond it is damaged.
#define MEMLODE_LIMIT_CHUNK_WORDS 0x100000 // words of the stream in one chunk
#define MEMLODE_LIMIT_CHUNK_ACCESSES 0x4000000 // accesses one chunk expands to
#define MEMLODE_LIMIT_CHUNK_UNPACKED_BYTES 0x4000000
#define MEMLODE_LIMIT_MANIFEST_BYTES 0x10000000 // manifest.json
#define MEMLODE_LIMIT_EVENT_BYTES 0x1000000 // a line of events.ndjson
#define MEMLODE_LIMIT_MODULE_FILE_BYTES 0x10000000 // a module file
#define MEMLODE_LIMIT_MODULE_UNPACKING 64 // a module's payload unpacks to at most this many times its bytes,
#define MEMLODE_LIMIT_MODULE_SMALL_BYTES 0x100000 // or to this many bytes
#define MEMLODE_LIMIT_PROCESSES 0x10000 // of one trace; those that come later are not recorded
#define MEMLODE_LIMIT_FRAMES 0x100000 // frames of a stack snapshot: the innermost are kept
#define MEMLODE_LIMIT_WIRE_PAYLOAD_BYTES 0x100000 // payload of one wire_frame
#define MEMLODE_LIMIT_WIRE_PUT_BYTES 0x10000000 // a file that is put in pieces
#define MEMLODE_LIMIT_WIRE_FILES 0x100000 // files of one trace
#define MEMLODE_LIMIT_WIRE_SENTENCE_BYTES 0x1000 // payload of a wire_reply
#define MEMLODE_LIMIT_RANGE_BYTES 0x1000000000000ULL // length of one range; a longer one was not carried out, and counts as its first byte
#define MEMLODE_LIMIT_LANES 64

// One segment of one function. The header word in a stream is this structure's load address.
struct memlode_anchor {
  int32_t table_rel; // start of the translation unit's table, relative to this field's own address
  uint32_t segment; // index into that table's segments
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_anchor) == 8, "memlode_anchor");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_anchor, table_rel) == 0, "memlode_anchor.table_rel");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_anchor, segment) == 4, "memlode_anchor.segment");

// Start of a translation unit's site table; LEB128 payload follows.
struct memlode_table_header {
  uint32_t magic;
  uint16_t version;
  uint16_t flags; // table_flag.*
  uint32_t payload_bytes; // length of the payload, without this header and without tail padding
  uint32_t crc32; // CRC-32 (IEEE) of the payload
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_table_header) == 16, "memlode_table_header");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_table_header, magic) == 0, "memlode_table_header.magic");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_table_header, version) == 4, "memlode_table_header.version");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_table_header, flags) == 6, "memlode_table_header.flags");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_table_header, payload_bytes) == 8, "memlode_table_header.payload_bytes");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_table_header, crc32) == 12, "memlode_table_header.crc32");

// Start of one chunk in threads/*.mlt; payload_bytes of payload follow.
struct memlode_chunk_header {
  uint32_t magic;
  uint16_t version; // version.trace
  uint8_t codec;
  uint8_t stream; // which of its thread's streams: signal handlers write to streams of their own
  uint32_t process; // index of the process in the trace
  uint32_t thread; // index of the thread in its process
  uint32_t sequence; // 0, 1, 2, … in each thread's file
  uint32_t raw_words; // words of the stream in this chunk
  uint32_t segments; // segment executions in this chunk
  uint32_t payload_bytes; // packed length
  uint32_t unpacked_bytes; // length after unpacking
  uint32_t payload_crc32; // CRC-32 (IEEE) of the packed payload
  uint32_t header_crc32; // CRC-32 (IEEE) of this header with this field zero
  uint32_t flags; // chunk_flag.*
  uint64_t accesses; // access, range, masked and gather ops executed
  uint64_t first_stamp; // time stamp counter when the chunk's first word could be written
  uint64_t last_stamp; // time stamp counter when the chunk was handed over
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_chunk_header) == 72, "memlode_chunk_header");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, magic) == 0, "memlode_chunk_header.magic");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, version) == 4, "memlode_chunk_header.version");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, codec) == 6, "memlode_chunk_header.codec");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, stream) == 7, "memlode_chunk_header.stream");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, process) == 8, "memlode_chunk_header.process");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, thread) == 12, "memlode_chunk_header.thread");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, sequence) == 16, "memlode_chunk_header.sequence");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, raw_words) == 20, "memlode_chunk_header.raw_words");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, segments) == 24, "memlode_chunk_header.segments");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, payload_bytes) == 28, "memlode_chunk_header.payload_bytes");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, unpacked_bytes) == 32, "memlode_chunk_header.unpacked_bytes");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, payload_crc32) == 36, "memlode_chunk_header.payload_crc32");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, header_crc32) == 40, "memlode_chunk_header.header_crc32");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, flags) == 44, "memlode_chunk_header.flags");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, accesses) == 48, "memlode_chunk_header.accesses");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, first_stamp) == 56, "memlode_chunk_header.first_stamp");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_chunk_header, last_stamp) == 64, "memlode_chunk_header.last_stamp");

// Start of a modules/*.mlm; payload_bytes of payload follow.
struct memlode_module_header {
  uint32_t magic;
  uint16_t version; // version.trace
  uint8_t codec;
  uint8_t flags; // zero
  uint64_t payload_bytes; // packed length
  uint64_t unpacked_bytes; // length after unpacking
  uint32_t payload_crc32; // CRC-32 (IEEE) of the packed payload
  uint32_t header_crc32; // CRC-32 (IEEE) of this header with this field zero
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_module_header) == 32, "memlode_module_header");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_module_header, magic) == 0, "memlode_module_header.magic");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_module_header, version) == 4, "memlode_module_header.version");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_module_header, codec) == 6, "memlode_module_header.codec");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_module_header, flags) == 7, "memlode_module_header.flags");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_module_header, payload_bytes) == 8, "memlode_module_header.payload_bytes");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_module_header, unpacked_bytes) == 16, "memlode_module_header.unpacked_bytes");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_module_header, payload_crc32) == 24, "memlode_module_header.payload_crc32");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_module_header, header_crc32) == 28, "memlode_module_header.header_crc32");

// Offset 0 of the memory for notes of blocks.
struct memlode_block_notes_header {
  uint32_t magic;
  uint16_t version; // version.block_notes
  uint16_t reserved; // zero
  uint64_t least; // blocks of fewer bytes are not noted
  uint64_t lost; // notes for which there was no room
  uint32_t reader; // the process that reads notes; 0: nobody does, and none are made
  uint8_t pad0[36]; // each side's number has its own cache line
  uint64_t head; // notes that were begun, by all programs
  uint8_t pad1[56];
  uint64_t tail; // notes that were read; their places may be used again
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_block_notes_header) == 136, "memlode_block_notes_header");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_notes_header, magic) == 0, "memlode_block_notes_header.magic");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_notes_header, version) == 4, "memlode_block_notes_header.version");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_notes_header, reserved) == 6, "memlode_block_notes_header.reserved");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_notes_header, least) == 8, "memlode_block_notes_header.least");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_notes_header, lost) == 16, "memlode_block_notes_header.lost");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_notes_header, reader) == 24, "memlode_block_notes_header.reader");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_notes_header, pad0) == 28, "memlode_block_notes_header.pad0");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_notes_header, head) == 64, "memlode_block_notes_header.head");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_notes_header, pad1) == 72, "memlode_block_notes_header.pad1");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_notes_header, tail) == 128, "memlode_block_notes_header.tail");

// Calls that led to a block.
struct memlode_block_path {
  uint64_t key; // hash of the calls, set first; 0 of an entry that is free
  uint32_t calls; // calls, set last
  uint32_t reserved; // zero
  uint64_t at[24]; // return addresses, the innermost first
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_block_path) == 208, "memlode_block_path");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_path, key) == 0, "memlode_block_path.key");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_path, calls) == 8, "memlode_block_path.calls");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_path, reserved) == 12, "memlode_block_path.reserved");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_path, at) == 16, "memlode_block_path.at");

// A note. The number n of a note, from 0, is one of its place, n modulo block_notes.notes.
struct memlode_block_note {
  uint64_t seal; // 0x9E3779B97F4A7C15 times (time ^ address <<< 17 ^ bytes <<< 34 ^ last <<< 51), plus n + 1; set last
  uint64_t time; // nanoseconds of CLOCK_MONOTONIC
  uint64_t address;
  uint64_t bytes;
  uint32_t pid; // the process; `last` is pid << 32 | kind << 16 | path
  uint16_t kind; // block_note.*
  uint16_t path; // index of the path, or block_note.no_path
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_block_note) == 40, "memlode_block_note");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_note, seal) == 0, "memlode_block_note.seal");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_note, time) == 8, "memlode_block_note.time");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_note, address) == 16, "memlode_block_note.address");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_note, bytes) == 24, "memlode_block_note.bytes");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_note, pid) == 32, "memlode_block_note.pid");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_note, kind) == 36, "memlode_block_note.kind");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_block_note, path) == 38, "memlode_block_note.path");

// Offset 0 of a process's shared memory.
struct memlode_process_header {
  uint32_t magic;
  uint16_t version; // version.ring
  uint16_t reserved; // zero
  uint32_t pid;
  uint32_t process; // index of the process in the trace
  uint32_t ring_count; // ring slots in this memory
  uint32_t chunks; // chunks per ring
  uint32_t doorbell; // futex: bumped by a producer that wakes the collector: it handed over the fourth chunk that waits, or can do nothing else
  uint32_t collector_asleep; // not 0 while the collector waits on the doorbell
  uint32_t heartbeat; // bumped by the collector at least every second
  uint32_t unregistered_threads; // threads that found no free ring: their events are not recorded
  uint32_t exiting_thread; // kernel id of the thread that ran the exit handlers, 0 before
  uint32_t patience_ms; // the time for which a program waits for a collector whose heartbeat has stopped; 0: for ever
  uint64_t generation; // source of ring generations
  uint32_t given_up; // not 0 once the program went on without its collector, which had shown no sign of life for that time
  uint32_t exits; // not 0 while the program is about to end, or to become another one, regularly
  uint32_t cancels; // not 0 once a thread may be cancelled at any instruction
  uint32_t sealed; // not 0 once the program has forbidden itself system calls: later accesses are not recorded
  uint32_t lost_children; // children that it has forked and that did not find the collector: they are not recorded
  uint32_t copies; // not 0 once another copy of the runtime has joined: a thread may have rings of both
  uint32_t foreign_tasks; // tasks that share its memory and are not its threads: their accesses are not recorded, nor those of the thread whose data they share meanwhile
  uint8_t pad0[44]; // the fields behind it are read often and written rarely, so they have their own cache line
  uint64_t dormant; // off.*; not 0 while nothing is to be recorded, and less than any address then; the program sees this page twice
  uint32_t was_dormant; // not 0 if dormant was ever not 0; it is set before dormant is
  uint32_t reserved3; // zero
  uint8_t regions[256]; // names of the regions to be recorded, each ended by a zero; empty: everything is
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_process_header) == 400, "memlode_process_header");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, magic) == 0, "memlode_process_header.magic");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, version) == 4, "memlode_process_header.version");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, reserved) == 6, "memlode_process_header.reserved");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, pid) == 8, "memlode_process_header.pid");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, process) == 12, "memlode_process_header.process");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, ring_count) == 16, "memlode_process_header.ring_count");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, chunks) == 20, "memlode_process_header.chunks");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, doorbell) == 24, "memlode_process_header.doorbell");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, collector_asleep) == 28, "memlode_process_header.collector_asleep");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, heartbeat) == 32, "memlode_process_header.heartbeat");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, unregistered_threads) == 36, "memlode_process_header.unregistered_threads");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, exiting_thread) == 40, "memlode_process_header.exiting_thread");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, patience_ms) == 44, "memlode_process_header.patience_ms");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, generation) == 48, "memlode_process_header.generation");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, given_up) == 56, "memlode_process_header.given_up");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, exits) == 60, "memlode_process_header.exits");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, cancels) == 64, "memlode_process_header.cancels");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, sealed) == 68, "memlode_process_header.sealed");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, lost_children) == 72, "memlode_process_header.lost_children");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, copies) == 76, "memlode_process_header.copies");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, foreign_tasks) == 80, "memlode_process_header.foreign_tasks");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, pad0) == 84, "memlode_process_header.pad0");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, dormant) == 128, "memlode_process_header.dormant");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, was_dormant) == 136, "memlode_process_header.was_dormant");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, reserved3) == 140, "memlode_process_header.reserved3");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_process_header, regions) == 144, "memlode_process_header.regions");

// Offset 0 of a ring region. Chunk k starts at (2 * k + 1) * chunk_bytes; slack of the same size follows each.
struct memlode_ring_header {
  uint32_t state; // ring.slot_*
  uint32_t tid; // kernel thread id
  uint64_t generation; // larger is younger; distinguishes two threads that had the same id
  uint64_t owner; // generation of the first ring of the same thread, which has a second one for its signal handlers
  uint32_t interrupted; // 1 while a signal handler runs that writes elsewhere: the last segment here may lack words
  uint32_t dormant_chunk; // 1 more than the number of the chunk that was last begun while recording was off; 0: none was
  uint64_t settled; // the end of the last segment that is known to be whole: number of its chunk << 32 | bytes in it
  uint32_t ended; // not 0 if the thread had ended by itself before its process did
  uint32_t reserved; // zero
  uint8_t pad0[16];
  uint32_t head; // chunks handed over so far (free running); written by the program
  uint8_t pad1[60];
  uint32_t tail; // chunks consumed so far (free running) and futex; written by the collector
  uint32_t producer_waits; // 1 while the program waits for tail to move
  uint8_t pad2[56];
  uint32_t end[64]; // bytes used in each chunk, slack included, or'ed with end_*; valid once handed over
  uint64_t first_stamp[64]; // time stamp counter when the chunk was taken
  uint64_t last_stamp[64]; // time stamp counter when it was handed over
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_ring_header) == 1472, "memlode_ring_header");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, state) == 0, "memlode_ring_header.state");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, tid) == 4, "memlode_ring_header.tid");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, generation) == 8, "memlode_ring_header.generation");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, owner) == 16, "memlode_ring_header.owner");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, interrupted) == 24, "memlode_ring_header.interrupted");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, dormant_chunk) == 28, "memlode_ring_header.dormant_chunk");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, settled) == 32, "memlode_ring_header.settled");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, ended) == 40, "memlode_ring_header.ended");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, reserved) == 44, "memlode_ring_header.reserved");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, pad0) == 48, "memlode_ring_header.pad0");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, head) == 64, "memlode_ring_header.head");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, pad1) == 68, "memlode_ring_header.pad1");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, tail) == 128, "memlode_ring_header.tail");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, producer_waits) == 132, "memlode_ring_header.producer_waits");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, pad2) == 136, "memlode_ring_header.pad2");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, end) == 192, "memlode_ring_header.end");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, first_stamp) == 448, "memlode_ring_header.first_stamp");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_ring_header, last_stamp) == 960, "memlode_ring_header.last_stamp");

// One message from a traced program.
struct memlode_request {
  uint32_t magic;
  uint16_t version; // version.ring
  uint16_t kind; // message.*
  uint32_t pid;
  uint32_t process; // index given by hello's reply; 0 in hello itself
  uint64_t load_bias; // run-time address minus link-time address of the module
  uint32_t build_id_length; // 0 when the module has none
  uint32_t path_length;
  uint8_t build_id[32];
  uint8_t path[4096]; // path of the module's file, not terminated
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_request) == 4160, "memlode_request");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_request, magic) == 0, "memlode_request.magic");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_request, version) == 4, "memlode_request.version");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_request, kind) == 6, "memlode_request.kind");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_request, pid) == 8, "memlode_request.pid");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_request, process) == 12, "memlode_request.process");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_request, load_bias) == 16, "memlode_request.load_bias");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_request, build_id_length) == 24, "memlode_request.build_id_length");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_request, path_length) == 28, "memlode_request.path_length");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_request, build_id) == 32, "memlode_request.build_id");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_request, path) == 64, "memlode_request.path");

// The collector's answer.
struct memlode_reply {
  uint32_t magic;
  uint16_t version; // version.ring
  uint16_t status; // message.status_*
  uint32_t process; // index of the process in the trace (hello)
  uint32_t reserved; // zero
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_reply) == 16, "memlode_reply");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_reply, magic) == 0, "memlode_reply.magic");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_reply, version) == 4, "memlode_reply.version");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_reply, status) == 6, "memlode_reply.status");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_reply, process) == 8, "memlode_reply.process");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_reply, reserved) == 12, "memlode_reply.reserved");

// An answer of a receiver; `bytes` of payload follow.
struct memlode_wire_reply {
  uint32_t magic;
  uint16_t version; // version.wire
  uint16_t status; // wire_status.*
  uint32_t bytes; // length of the payload
  uint32_t reserved; // zero
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_wire_reply) == 16, "memlode_wire_reply");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_reply, magic) == 0, "memlode_wire_reply.magic");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_reply, version) == 4, "memlode_wire_reply.version");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_reply, status) == 6, "memlode_wire_reply.status");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_reply, bytes) == 8, "memlode_wire_reply.bytes");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_reply, reserved) == 12, "memlode_wire_reply.reserved");

// A sender's answer to the challenge.
struct memlode_wire_answer {
  uint32_t magic;
  uint16_t version; // version.wire
  uint16_t reserved; // zero
  uint8_t nonce[32]; // random: the receiver's challenge
  uint8_t proof[32]; // HMAC-SHA-256 of "sender" and both nonces, the receiver's first, keyed with the token
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_wire_answer) == 72, "memlode_wire_answer");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_answer, magic) == 0, "memlode_wire_answer.magic");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_answer, version) == 4, "memlode_wire_answer.version");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_answer, reserved) == 6, "memlode_wire_answer.reserved");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_answer, nonce) == 8, "memlode_wire_answer.nonce");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_answer, proof) == 40, "memlode_wire_answer.proof");

// A piece of a trace; `bytes` of payload follow.
struct memlode_wire_frame {
  uint16_t kind; // wire.append …
  uint16_t flags; // wire.last_piece or 0
  uint32_t bytes; // length of the payload
  uint32_t a; // index of the process or module
  uint32_t b; // index of the thread
  uint64_t at; // bytes that came before of the file (append) or of the pieces (put)
};
MEMLODE_STATIC_ASSERT(sizeof(struct memlode_wire_frame) == 24, "memlode_wire_frame");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_frame, kind) == 0, "memlode_wire_frame.kind");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_frame, flags) == 2, "memlode_wire_frame.flags");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_frame, bytes) == 4, "memlode_wire_frame.bytes");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_frame, a) == 8, "memlode_wire_frame.a");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_frame, b) == 12, "memlode_wire_frame.b");
MEMLODE_STATIC_ASSERT(offsetof(struct memlode_wire_frame, at) == 16, "memlode_wire_frame.at");

#endif
