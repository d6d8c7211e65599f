# Generated from format/trace.toml by `cargo xtask gen`. Do not edit.
"""The numbers and structures of the memlode trace format; see format/SPEC.md."""

import struct
from collections import namedtuple

# Versions. A change that an older reader would misread raises one of them and adds a golden file.
VERSION_TRACE = 4  # trace directory: manifest, chunk header, payload layout; 2: chunks of dormant threads; 3: words as heads and tails; 4: sections
VERSION_SAMPLED_TRACE = 5  # the same of a trace that holds samples: an older reader would take them for all accesses
VERSION_TABLE = 2  # site table (one per translation unit) inside an ELF image; 2: sections
VERSION_WIRE = 2  # a trace sent through a socket; 2: the receiver, too, proves that it knows the token
VERSION_BLOCK_NOTES = 2  # memory that a sampled program notes its blocks in
VERSION_RING = 3  # shared memory between a traced program and the collector; 2: chunks of dormant threads; 3: `dormant` as 64 bits

# First four bytes, little endian, of each binary object (read as ASCII in the file).
MAGIC_CHUNK = 0x4b434c4d  # "MLCK": one chunk of a thread's stream
MAGIC_MODULE = 0x444d4c4d  # "MLMD": one module file
MAGIC_TABLE = 0x42544c4d  # "MLTB": one translation unit's site table
MAGIC_RING = 0x47524c4d  # "MLRG": a process's shared memory
MAGIC_WIRE = 0x52574c4d  # "MLWR": a message of, or to, a receiver of traces
MAGIC_MESSAGE = 0x534d4c4d  # "MLMS": one message on the collector's socket
MAGIC_BLOCK_NOTES = 0x4e424c4d  # "MLBN": memory in which a program notes its blocks

# ELF sections of an instrumented image, never touched at run time.
SECTION_ANCHORS = "memlode_seg"  # one 8-byte anchor per segment; a header word is the address of one
SECTION_TABLES = "memlode_tab"  # the site tables, one per translation unit
SECTION_FUNCTIONS = "memlode_fun"  # where each function that the pass has looked at is (SPEC.md §2.8)
SECTION_FAR_FUNCTIONS = "memlode_fun_far"  # those of the medium and large code models

# The contents of a section of a site table (SPEC.md §5.1). Readers skip those that they do not know.
TABLE_SECTION_TYPES = 1  # the layouts of types (SPEC.md §2.3)
TABLE_SECTION_INSTRUCTIONS = 2  # about how many lie between accesses (SPEC.md §2.4)
TABLE_SECTION_FEEDS = 3  # the loads on which addresses and stored data depend (SPEC.md §2.4)
TABLE_SECTION_LEFT_OUT = 4  # accesses of the unit that are not recorded, by reason
TABLE_SECTION_ASKED = 5  # the user's rules and names of allocators, and whether the unit has matches for them
TABLE_SECTION_BRANCHES = 6  # the loads on which the branches behind an access depend (SPEC.md §2.4)
TABLE_SECTION_CALLS = 7  # which calls may come behind a segment (SPEC.md §2.5)
TABLE_SECTION_EARLIER = 8  # which of the values in feeds and branches are of the iteration before (SPEC.md §2.4)
TABLE_SECTION_UNRECORDED = 9  # accesses that are executed with a segment and not recorded (SPEC.md §2.6)
TABLE_SECTION_SOURCES = 10  # where the unit was compiled, and checksums of its files (SPEC.md §2.7)
TABLE_SECTION_UNTYPED = 11  # functions that return memory of no type (SPEC.md §2.9)
TABLE_SECTION_PRIVATE = 0x10000  # from here on: for trials and tests, and never given a meaning

# Facts of a call (SPEC.md §2.5).
CALL_FLAG_EXACT = 1  # it enters the function that it names, or none

# The contents of a section of a module file (SPEC.md §5.1). Readers skip those that they do not know.
MODULE_SECTION_FOREIGN = 1  # functions of the image that memlode did not compile (SPEC.md §4.2)
MODULE_SECTION_SAMPLED = 2  # instructions of an image that was sampled (SPEC.md §4.5)
MODULE_SECTION_PRIVATE = 0x10000  # from here on: for trials and tests, and never given a meaning

# Properties of the section `foreign` of a module file, and of a function in it (bit sets).
FOREIGN_FLAG_LOCAL = 1  # a function whose name is known only in its own unit
FOREIGN_FLAG_LIBRARIES = 2  # of the section: the program is linked statically, so the C library is among its functions

# Properties of an image that was sampled (bit set).
SAMPLED_FLAG_DEBUG = 1  # it has debug information
SAMPLED_FLAG_UNREAD = 2  # its file could not be read; behind the flags: why

# Why the data of a sampled instruction has no type.
UNTYPED_TYPED = 0  # it has one, or a variable
UNTYPED_NO_DEBUG_INFORMATION = 1
UNTYPED_NO_FUNCTION = 2  # of none that debug information knows
UNTYPED_NO_INSTRUCTION = 3  # its bytes are none that is known
UNTYPED_NO_MEMORY = 4  # it touches none
UNTYPED_UNKNOWN_POINTER = 5  # no variable says what its register points to
UNTYPED_UNTYPED_POINTER = 6  # to something without a type: `void *`
UNTYPED_FRAME = 7  # the frame, where no variable lies
UNTYPED_OTHER_MEMORY = 8  # of the thread's own, or that of which vectors have the addresses
UNTYPED_STATIC_MEMORY = 9  # where no variable lies
UNTYPED_STACK = 10  # a register or return address that is saved or restored

# Properties of a block in the section `blocks` of a chunk (bit set).
SAMPLED_BLOCK_FLAG_MAPPED = 1  # it was mapped, and is no block of the heap

# The contents of a section of a chunk (SPEC.md §5.1). Readers skip those that they do not know.
CHUNK_SECTION_SAMPLES = 1  # what only samples have: columns (SPEC.md §4.5)
CHUNK_SECTION_CALL_PATHS = 2  # where functions were called (SPEC.md §4.5)
CHUNK_SECTION_BLOCKS = 3  # blocks of memory that samples lie in (SPEC.md §4.5)
CHUNK_SECTION_PRIVATE = 0x10000  # from here on: for trials and tests, and never given a meaning

# A column of the section `samples` of a chunk: a number for each sample, 0 if it is not known, else 1 more than the value.
SAMPLE_COLUMN_WEIGHT = 1  # events, or nanoseconds, that the sample stands for
SAMPLE_COLUMN_ADDRESS_KNOWN = 2  # 0 if the access's address is not known; the address of the access is 0 then
SAMPLE_COLUMN_ON_STACK = 3  # 1 if the address lies in the thread's stack
SAMPLE_COLUMN_LATENCY = 4  # cycles that the access took
SAMPLE_COLUMN_SOURCE = 5  # where the data came from: the kernel's perf_mem_data_src
SAMPLE_COLUMN_CPU = 6  # processor
SAMPLE_COLUMN_PAGE_BYTES = 7  # size of the data's page
SAMPLE_COLUMN_CALL_PATH = 8  # index into the section `call_paths`
SAMPLE_COLUMN_BLOCK = 9  # index into the section `blocks`
SAMPLE_COLUMN_PRIVATE = 0x10000  # from here on: for trials and tests, and never given a meaning

# A thread's stream: 8-byte words.
STREAM_WORD_BYTES = 8
STREAM_ADDRESS_BITS = 48  # a header word has its upper 16 bits clear; other values are reserved
STREAM_ANCHOR_BYTES = 8
STREAM_MAX_SEGMENT_WORDS = 4096  # words behind a header; a longer segment is split by the pass
STREAM_UNKNOWN_HANDLE = 1  # object of a create whose handle lay in memory that the new thread may have freed

# The event that one step of a segment records. Word operands follow the header in the order of the ops.
OP_ACCESS = 0  # site, address
OP_RANGE = 1  # site, address, length: memset, and each side of memcpy or memmove
OP_MASKED = 2  # site, lanes, address; one mask word: lane i is at address + i * bytes
OP_GATHER = 3  # site, lanes; one address word a lane, then one mask word
OP_DERIVED = 4  # site, segment, word, distance: an access at a distance from a word of an earlier segment
OP_REPEAT = 5  # one word: the number of iterations; the rest of the segment are the strides of one iteration
OP_STRIDE = 6  # site, address, step: an access, its address a step further each time
OP_ENTER = 16  # one word: address of the return-address slot (the frame's identity)
OP_EXIT = 17  # no word
OP_RESUME = 18  # one word, as enter: control came back by unwinding or longjmp
OP_ALLOC = 32  # site; words base, bytes
OP_ALLOC_ARRAY = 33  # site; words base, count, element bytes
OP_REALLOC = 34  # site; words new base, bytes, old base
OP_FREE = 35  # site; word base
OP_UNMAP = 36  # site; words base, bytes
OP_VALUE = 48  # words: the value that the access before moved, 8 bytes a word; for an update the old value, then the new one
OP_STAMP = 49  # one word: time stamp counter, read after the thread's acquisitions
OP_SYNC = 50  # sync, address of its object; one word, the time stamp counter: read behind an acquisition, in front of a release

# Events that order threads through objects. Odd ones release the thread's earlier accesses, even ones acquire those released through the object.
SYNC_ACQUIRE = 0  # an atomic operation that acquires
SYNC_RELEASE = 1  # an atomic operation that releases
SYNC_LOCK = 2  # a mutex or another lock was taken
SYNC_UNLOCK = 3  # and is given back
SYNC_WAIT = 4  # the thread waited for a condition variable, a semaphore, or an action that is done once
SYNC_SIGNAL = 5  # and a waiting thread may go on
SYNC_LEAVE = 6  # a barrier was left
SYNC_ARRIVE = 7  # and somebody is there
SYNC_JOIN = 8  # a thread has ended; the object is its pthread_t
SYNC_CREATE = 9  # and one was created, just before the stamp

# The effect of a site on memory.
KIND_LOAD = 0
KIND_STORE = 1
KIND_UPDATE = 2  # atomic read-modify-write
KIND_ALLOC = 3
KIND_FREE = 4

# The evidence for a site's variable, type and member, best first.
EVIDENCE_NONE = 0
EVIDENCE_SOURCE = 1  # remembered from the unoptimised module, same scope, line, column and direction
EVIDENCE_DEBUG = 2  # walk over debug records on the optimised module
EVIDENCE_TBAA = 3  # type-based alias tag alone
EVIDENCE_PARTIAL = 4  # a type, a variable or a line only

# Properties of a site (bit set).
FLAG_APPROXIMATE = 1  # the line is that of the nearest instruction that had one, or the access is a library function's
FLAG_ATOMIC = 2
FLAG_VOLATILE = 4
FLAG_STACK = 8  # the address is based on a stack slot of the function
FLAG_GLOBAL = 16  # the address is based on a global variable
FLAG_VECTOR = 32  # one access of a vector register
FLAG_FLOAT = 64  # its value is recorded and is a floating-point number
FLAG_LOADED_ADDRESS = 128  # the address comes out of a loaded value: an index, a pointer
FLAG_CHASED = 256  # and that out of one loaded the iteration before, as in a list; only with loaded_address
FLAG_COMPUTED_ADDRESS = 512  # the address comes out of arithmetic that does more than count, and of no loaded value
FLAG_NON_TEMPORAL = 1024  # the program bypasses the caches, as by a streaming store
FLAG_ACQUIRE = 2048  # atomic: later accesses see those before the release whose value it read
FLAG_RELEASE = 4096  # atomic: a thread that acquires its value sees the accesses before it
FLAG_SEQUENTIAL = 8192  # atomic: it is in the one order of all such accesses; a store empties the store buffer
FLAG_FENCED = 16384  # a full fence stands beside it, before the next access or behind the one before
FLAG_PREFETCH = 32768  # a load that only requests a line: nothing waits for it
FLAG_POLL = 65536  # in a loop that only waits for another thread: an iteration that changes nothing means nothing else
FLAG_ADDS = 131072  # it adds to its bytes, or is the load or the store of such an addition: nothing else uses the value

# The form of a type, in the section `types` of a site table.
TYPE_FORM_SCALAR = 0  # a type without members that is none of the others
TYPE_FORM_POINTER = 1  # or a reference
TYPE_FORM_ENUMERATION = 2
TYPE_FORM_ARRAY = 3  # behind the name: opt type of the elements; list of extents, 0 if one is not known
TYPE_FORM_STRUCTURE = 4  # behind the name: list of members; as of the three that follow
TYPE_FORM_CLASS = 5
TYPE_FORM_UNION = 6
TYPE_FORM_VARIANTS = 7  # one of several, selected by a discriminant: a part of a Rust enum
TYPE_FORM_DESCRIPTOR = 8  # of a Fortran array whose elements are elsewhere

# Properties of a type in the section `types` (bit set); readers ignore those they do not know.
TYPE_FLAG_INCOMPLETE = 1  # declared only: its members are not known
TYPE_FLAG_WATCHED = 2  # a function of the unit accesses one, so its uses of the members' addresses are known
TYPE_FLAG_CAST = 4  # only if watched: a pointer to one is used as one to another record, or the other way round

# The properties of a member of a type, in the section `types` of a site table.
MEMBER_KIND_FIELD = 0
MEMBER_KIND_BASE = 1  # a base class
MEMBER_KIND_VIRTUAL_BASE = 2  # a base class whose place is in the virtual table; its offset is 0
MEMBER_KIND_VPTR = 3  # the pointer to the virtual table
MEMBER_KIND_DISCRIMINANT = 4  # of variants: the member that selects one
MEMBER_KIND_VARIANTS = 5  # the variants of a record that has some
MEMBER_KIND_VARIANT = 6  # one of them; behind it: 1 and the value of the discriminant that means it, or 0

# Properties of a member of a type (bit set); readers ignore those they do not know.
MEMBER_FLAG_BIT_FIELD = 1
MEMBER_FLAG_ESCAPES = 2  # its address is passed to another function, stored, returned or converted to a number

# Properties of a translation unit's table (bit set); readers ignore those they do not know.
TABLE_FLAG_FILTERED = 1  # the user's filter left events out: not every access of the unit is recorded
TABLE_FLAG_AS_WRITTEN = 2  # recorded before optimisation: the accesses of the source, not those of the code that ran
TABLE_FLAG_NAMELESS = 4  # without -g, or with -g1: variables, types and members are not known

# Why something that touches memory is not recorded.
LEFT_OUT_ASSEMBLY = 0  # inline assembly that may touch more than its operands
LEFT_OUT_BY_VALUE = 1  # the write side of a by-value argument's copy
LEFT_OUT_ADDRESS_SPACE = 2  # another address space: %fs and %gs on x86
LEFT_OUT_VECTOR = 3  # a vector of more than 64 lanes under a mask, or of a length that is not known when compiling
LEFT_OUT_INTRINSIC = 4  # an operation of the processor that the pass does not know
LEFT_OUT_ASSEMBLY_JUMP = 5  # an assembly that jumps: the first records at its labels may come late
LEFT_OUT_TAIL_CALL = 6  # accesses of a library function behind a tail call
LEFT_OUT_FUNCTION = 7  # a whole function, naked or otherwise out of reach
LEFT_OUT_FILTER = 8  # left out by the user's filter
LEFT_OUT_CALL = 9  # a function of another unit: if no table knows it, memlode did not compile it

# Shared memory: one memfd per process, a process header and then ring regions.
RING_CHUNK_BYTES = 0x10000  # capacity before the room test fails
RING_ROOM_BIT = 0x10000  # set in a cursor that lies inside a chunk; clear in the slack behind it
RING_CHUNKS = 16  # chunks per ring; region = (2 * chunks + 2) * chunk_bytes
RING_RINGS = 4096  # ring slots per process
RING_FIRST_RING_OFFSET = 0x10000  # file offset of ring 0; ring i is one region further each
RING_END_CUT_SHORT = 1  # set in end[k]: the chunk was given up; its last segment may lack words
RING_END_GAP = 2  # set in end[k]: recording was switched off behind this chunk
RING_END_DORMANT = 4  # set in end[k]: recording was off in it; it holds allocations only
RING_PATIENCE_MS = 90000  # the default wait for a collector without a sign of life: longer than that for a receiver
RING_SLOT_FREE = 0
RING_SLOT_CLAIMED = 1  # the program is filling in the ring's header
RING_SLOT_ACTIVE = 2
RING_SLOT_DRAINING = 3  # the thread is gone; the collector has chunks to read

# Memory in which a program that `memlode sample` started notes its blocks: one memfd, with a header, a table of call paths, and a ring of notes.
BLOCK_NOTES_PATHS = 0xffff  # entries of the table: open, the first place by bits 16 to 31 of the key
BLOCK_NOTES_PATH_CALLS = 24  # calls of a path, the innermost
BLOCK_NOTES_FIRST_PATH_OFFSET = 0x1000  # file offset of path 0
BLOCK_NOTES_NOTES = 0x40000  # notes in the ring
BLOCK_NOTES_FIRST_NOTE_OFFSET = 0xd01000  # file offset of note 0
BLOCK_NOTES_BYTES = 0x1701000  # length of all

# The kinds of notes of blocks.
BLOCK_NOTE_TAKEN = 0  # a block of the heap was taken
BLOCK_NOTE_FREED = 1  # and given back; its length is 0
BLOCK_NOTE_MAPPED = 2  # memory was mapped
BLOCK_NOTE_UNMAPPED = 3  # and unmapped
BLOCK_NOTE_NO_PATH = 0xffff  # the path of a block whose calls found no room

# Why nothing is to be recorded (bit set): bits of a process header's `dormant`.
OFF_NOBODY = 1  # there is no collector; set by the program
OFF_PACE = 2  # between two bursts; set by the collector, as those that follow
OFF_USER = 4  # the user stopped it
OFF_WINDOW = 8  # before or behind the requested stretch
OFF_REGION = 16  # outside the requested regions; set by the program
OFF_OVER = 32  # it will not be on again: not even allocations matter

# Requests on the collector's SOCK_SEQPACKET Unix socket. One request a connection; a reply ends it.
MESSAGE_HELLO = 1  # reply carries the memfd
MESSAGE_MODULE_LOAD = 2  # reply after the module's table is known
MESSAGE_MODULE_UNLOAD = 3  # reply after everything recorded so far has been read
MESSAGE_STATUS_OK = 0
MESSAGE_STATUS_REFUSED = 1
MESSAGE_STATUS_VERSION = 2
MESSAGE_PATH_BYTES = 4096
MESSAGE_BUILD_ID_BYTES = 32

# Properties of a chunk (bit set).
CHUNK_FLAG_AFTER_GAP = 1  # recording had been off: accesses since the stream's chunk before are unknown, and so is the stack
CHUNK_FLAG_DORMANT = 2  # recording was off: the chunk has only allocations, without the stack

# A trace on its way to `memlode serve` (SPEC.md §6): what a wire_frame holds.
WIRE_APPEND = 0  # thread file a.b: payload at offset `at`, which is its end
WIRE_APPEND_EVENTS = 1  # events.ndjson, the same
WIRE_PUT_MODULE = 2  # module file a: a piece of it
WIRE_PUT_MANIFEST = 3  # manifest.json: a piece of it
WIRE_ALIVE = 4  # nothing happened lately
WIRE_FINISH = 5  # all has been sent; the reply is wire_status.ok once it is stored
WIRE_APPEND_INDEX = 6  # chunks.mlx, as append_events
WIRE_LAST_PIECE = 1  # flag of a put

# The answers of a receiver, in a wire_reply.
WIRE_STATUS_OK = 0
WIRE_STATUS_REFUSED = 1  # the payload is a sentence; the connection ends
WIRE_STATUS_CHALLENGE = 2  # the payload is a nonce of 32 bytes

# The ways to pack a chunk's payload.
CODEC_STORED = 0  # not packed
CODEC_ZSTD = 1  # one zstd frame

# Limits that a reader may rely on; a file beyond it is damaged.
LIMIT_CHUNK_WORDS = 0x100000  # words of the stream in one chunk
LIMIT_CHUNK_ACCESSES = 0x4000000  # accesses one chunk expands to
LIMIT_CHUNK_UNPACKED_BYTES = 0x4000000
LIMIT_MANIFEST_BYTES = 0x10000000  # manifest.json
LIMIT_EVENT_BYTES = 0x1000000  # a line of events.ndjson
LIMIT_MODULE_FILE_BYTES = 0x10000000  # a module file
LIMIT_MODULE_UNPACKING = 64  # a module's payload unpacks to at most this many times its bytes,
LIMIT_MODULE_SMALL_BYTES = 0x100000  # or to this many bytes
LIMIT_PROCESSES = 0x10000  # of one trace; those that come later are not recorded
LIMIT_FRAMES = 0x100000  # frames of a stack snapshot: the innermost are kept
LIMIT_WIRE_PAYLOAD_BYTES = 0x100000  # payload of one wire_frame
LIMIT_WIRE_PUT_BYTES = 0x10000000  # a file that is put in pieces
LIMIT_WIRE_FILES = 0x100000  # files of one trace
LIMIT_WIRE_SENTENCE_BYTES = 0x1000  # payload of a wire_reply
LIMIT_RANGE_BYTES = 0x1000000000000  # length of one range; a longer one was not carried out, and counts as its first byte
LIMIT_LANES = 64


class Layout:
    """A fixed structure: unpack() gives a named tuple, pack() takes the same values by name."""

    def __init__(self, name, *fields):
        self.fields = fields  # (name, struct code, count or None for a scalar)
        self.tuple = namedtuple(name, [field[0] for field in fields])
        self.struct = struct.Struct("<" + "".join(f"{count or ''}{code}" for _, code, count in fields))
        self.size = self.struct.size

    def unpack(self, buffer, offset=0):
        values = iter(self.struct.unpack_from(buffer, offset))
        return self.tuple(*(
            next(values) if count is None or code == "s" else tuple(next(values) for _ in range(count))
            for _, code, count in self.fields
        ))

    def pack(self, **values):
        flat = []
        for name, code, count in self.fields:
            if count is None or code == "s":
                flat.append(values.get(name, b"" if code == "s" else 0))
            else:
                flat.extend(values.get(name, [0] * count))
        return self.struct.pack(*flat)


# One segment of one function. The header word in a stream is this structure's load address.
ANCHOR = Layout(
    "anchor",
    ("table_rel", "i", None),  # start of the translation unit's table, relative to this field's own address
    ("segment", "I", None),  # index into that table's segments
)
assert ANCHOR.size == 8

# Start of a translation unit's site table; LEB128 payload follows.
TABLE_HEADER = Layout(
    "table_header",
    ("magic", "I", None),
    ("version", "H", None),
    ("flags", "H", None),  # table_flag.*
    ("payload_bytes", "I", None),  # length of the payload, without this header and without tail padding
    ("crc32", "I", None),  # CRC-32 (IEEE) of the payload
)
assert TABLE_HEADER.size == 16

# Start of one chunk in threads/*.mlt; payload_bytes of payload follow.
CHUNK_HEADER = Layout(
    "chunk_header",
    ("magic", "I", None),
    ("version", "H", None),  # version.trace
    ("codec", "B", None),
    ("stream", "B", None),  # which of its thread's streams: signal handlers write to streams of their own
    ("process", "I", None),  # index of the process in the trace
    ("thread", "I", None),  # index of the thread in its process
    ("sequence", "I", None),  # 0, 1, 2, … in each thread's file
    ("raw_words", "I", None),  # words of the stream in this chunk
    ("segments", "I", None),  # segment executions in this chunk
    ("payload_bytes", "I", None),  # packed length
    ("unpacked_bytes", "I", None),  # length after unpacking
    ("payload_crc32", "I", None),  # CRC-32 (IEEE) of the packed payload
    ("header_crc32", "I", None),  # CRC-32 (IEEE) of this header with this field zero
    ("flags", "I", None),  # chunk_flag.*
    ("accesses", "Q", None),  # access, range, masked and gather ops executed
    ("first_stamp", "Q", None),  # time stamp counter when the chunk's first word could be written
    ("last_stamp", "Q", None),  # time stamp counter when the chunk was handed over
)
assert CHUNK_HEADER.size == 72

# Start of a modules/*.mlm; payload_bytes of payload follow.
MODULE_HEADER = Layout(
    "module_header",
    ("magic", "I", None),
    ("version", "H", None),  # version.trace
    ("codec", "B", None),
    ("flags", "B", None),  # zero
    ("payload_bytes", "Q", None),  # packed length
    ("unpacked_bytes", "Q", None),  # length after unpacking
    ("payload_crc32", "I", None),  # CRC-32 (IEEE) of the packed payload
    ("header_crc32", "I", None),  # CRC-32 (IEEE) of this header with this field zero
)
assert MODULE_HEADER.size == 32

# Offset 0 of the memory for notes of blocks.
BLOCK_NOTES_HEADER = Layout(
    "block_notes_header",
    ("magic", "I", None),
    ("version", "H", None),  # version.block_notes
    ("reserved", "H", None),  # zero
    ("least", "Q", None),  # blocks of fewer bytes are not noted
    ("lost", "Q", None),  # notes for which there was no room
    ("reader", "I", None),  # the process that reads notes; 0: nobody does, and none are made
    ("pad0", "s", 36),  # each side's number has its own cache line
    ("head", "Q", None),  # notes that were begun, by all programs
    ("pad1", "s", 56),
    ("tail", "Q", None),  # notes that were read; their places may be used again
)
assert BLOCK_NOTES_HEADER.size == 136

# Calls that led to a block.
BLOCK_PATH = Layout(
    "block_path",
    ("key", "Q", None),  # hash of the calls, set first; 0 of an entry that is free
    ("calls", "I", None),  # calls, set last
    ("reserved", "I", None),  # zero
    ("at", "Q", 24),  # return addresses, the innermost first
)
assert BLOCK_PATH.size == 208

# A note. The number n of a note, from 0, is one of its place, n modulo block_notes.notes.
BLOCK_NOTE = Layout(
    "block_note",
    ("seal", "Q", None),  # 0x9E3779B97F4A7C15 times (time ^ address <<< 17 ^ bytes <<< 34 ^ last <<< 51), plus n + 1; set last
    ("time", "Q", None),  # nanoseconds of CLOCK_MONOTONIC
    ("address", "Q", None),
    ("bytes", "Q", None),
    ("pid", "I", None),  # the process; `last` is pid << 32 | kind << 16 | path
    ("kind", "H", None),  # block_note.*
    ("path", "H", None),  # index of the path, or block_note.no_path
)
assert BLOCK_NOTE.size == 40

# Offset 0 of a process's shared memory.
PROCESS_HEADER = Layout(
    "process_header",
    ("magic", "I", None),
    ("version", "H", None),  # version.ring
    ("reserved", "H", None),  # zero
    ("pid", "I", None),
    ("process", "I", None),  # index of the process in the trace
    ("ring_count", "I", None),  # ring slots in this memory
    ("chunks", "I", None),  # chunks per ring
    ("doorbell", "I", None),  # futex: bumped by a producer that wakes the collector: it handed over the fourth chunk that waits, or can do nothing else
    ("collector_asleep", "I", None),  # not 0 while the collector waits on the doorbell
    ("heartbeat", "I", None),  # bumped by the collector at least every second
    ("unregistered_threads", "I", None),  # threads that found no free ring: their events are not recorded
    ("exiting_thread", "I", None),  # kernel id of the thread that ran the exit handlers, 0 before
    ("patience_ms", "I", None),  # the time for which a program waits for a collector whose heartbeat has stopped; 0: for ever
    ("generation", "Q", None),  # source of ring generations
    ("given_up", "I", None),  # not 0 once the program went on without its collector, which had shown no sign of life for that time
    ("exits", "I", None),  # not 0 while the program is about to end, or to become another one, regularly
    ("cancels", "I", None),  # not 0 once a thread may be cancelled at any instruction
    ("sealed", "I", None),  # not 0 once the program has forbidden itself system calls: later accesses are not recorded
    ("lost_children", "I", None),  # children that it has forked and that did not find the collector: they are not recorded
    ("copies", "I", None),  # not 0 once another copy of the runtime has joined: a thread may have rings of both
    ("foreign_tasks", "I", None),  # tasks that share its memory and are not its threads: their accesses are not recorded, nor those of the thread whose data they share meanwhile
    ("pad0", "s", 44),  # the fields behind it are read often and written rarely, so they have their own cache line
    ("dormant", "Q", None),  # off.*; not 0 while nothing is to be recorded, and less than any address then; the program sees this page twice
    ("was_dormant", "I", None),  # not 0 if dormant was ever not 0; it is set before dormant is
    ("reserved3", "I", None),  # zero
    ("regions", "s", 256),  # names of the regions to be recorded, each ended by a zero; empty: everything is
)
assert PROCESS_HEADER.size == 400

# Offset 0 of a ring region. Chunk k starts at (2 * k + 1) * chunk_bytes; slack of the same size follows each.
RING_HEADER = Layout(
    "ring_header",
    ("state", "I", None),  # ring.slot_*
    ("tid", "I", None),  # kernel thread id
    ("generation", "Q", None),  # larger is younger; distinguishes two threads that had the same id
    ("owner", "Q", None),  # generation of the first ring of the same thread, which has a second one for its signal handlers
    ("interrupted", "I", None),  # 1 while a signal handler runs that writes elsewhere: the last segment here may lack words
    ("dormant_chunk", "I", None),  # 1 more than the number of the chunk that was last begun while recording was off; 0: none was
    ("settled", "Q", None),  # the end of the last segment that is known to be whole: number of its chunk << 32 | bytes in it
    ("ended", "I", None),  # not 0 if the thread had ended by itself before its process did
    ("reserved", "I", None),  # zero
    ("pad0", "s", 16),
    ("head", "I", None),  # chunks handed over so far (free running); written by the program
    ("pad1", "s", 60),
    ("tail", "I", None),  # chunks consumed so far (free running) and futex; written by the collector
    ("producer_waits", "I", None),  # 1 while the program waits for tail to move
    ("pad2", "s", 56),
    ("end", "I", 64),  # bytes used in each chunk, slack included, or'ed with end_*; valid once handed over
    ("first_stamp", "Q", 64),  # time stamp counter when the chunk was taken
    ("last_stamp", "Q", 64),  # time stamp counter when it was handed over
)
assert RING_HEADER.size == 1472

# One message from a traced program.
REQUEST = Layout(
    "request",
    ("magic", "I", None),
    ("version", "H", None),  # version.ring
    ("kind", "H", None),  # message.*
    ("pid", "I", None),
    ("process", "I", None),  # index given by hello's reply; 0 in hello itself
    ("load_bias", "Q", None),  # run-time address minus link-time address of the module
    ("build_id_length", "I", None),  # 0 when the module has none
    ("path_length", "I", None),
    ("build_id", "s", 32),
    ("path", "s", 4096),  # path of the module's file, not terminated
)
assert REQUEST.size == 4160

# The collector's answer.
REPLY = Layout(
    "reply",
    ("magic", "I", None),
    ("version", "H", None),  # version.ring
    ("status", "H", None),  # message.status_*
    ("process", "I", None),  # index of the process in the trace (hello)
    ("reserved", "I", None),  # zero
)
assert REPLY.size == 16

# An answer of a receiver; `bytes` of payload follow.
WIRE_REPLY = Layout(
    "wire_reply",
    ("magic", "I", None),
    ("version", "H", None),  # version.wire
    ("status", "H", None),  # wire_status.*
    ("bytes", "I", None),  # length of the payload
    ("reserved", "I", None),  # zero
)
assert WIRE_REPLY.size == 16

# A sender's answer to the challenge.
WIRE_ANSWER = Layout(
    "wire_answer",
    ("magic", "I", None),
    ("version", "H", None),  # version.wire
    ("reserved", "H", None),  # zero
    ("nonce", "s", 32),  # random: the receiver's challenge
    ("proof", "s", 32),  # HMAC-SHA-256 of "sender" and both nonces, the receiver's first, keyed with the token
)
assert WIRE_ANSWER.size == 72

# A piece of a trace; `bytes` of payload follow.
WIRE_FRAME = Layout(
    "wire_frame",
    ("kind", "H", None),  # wire.append …
    ("flags", "H", None),  # wire.last_piece or 0
    ("bytes", "I", None),  # length of the payload
    ("a", "I", None),  # index of the process or module
    ("b", "I", None),  # index of the thread
    ("at", "Q", None),  # bytes that came before of the file (append) or of the pieces (put)
)
assert WIRE_FRAME.size == 24
