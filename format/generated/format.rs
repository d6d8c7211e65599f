// Generated from format/trace.toml by `cargo xtask gen`. Do not edit.

//! The numbers and structures of the trace format; see `format/SPEC.md`.

/// Versions. A change that an older reader would misread raises one of them and adds a golden file.
pub mod version {
    /// trace directory: manifest, chunk header, payload layout; 2: chunks of dormant threads; 3: words as heads and tails; 4: sections
    pub const TRACE: u16 = 4;
    /// the same of a trace that holds samples: an older reader would take them for all accesses
    pub const SAMPLED_TRACE: u16 = 5;
    /// site table (one per translation unit) inside an ELF image; 2: sections
    pub const TABLE: u16 = 2;
    /// a trace sent through a socket; 2: the receiver, too, proves that it knows the token
    pub const WIRE: u16 = 2;
    /// memory that a sampled program notes its blocks in
    pub const BLOCK_NOTES: u16 = 2;
    /// shared memory between a traced program and the collector; 2: chunks of dormant threads; 3: `dormant` as 64 bits
    pub const RING: u16 = 3;
}

/// First four bytes, little endian, of each binary object (read as ASCII in the file).
pub mod magic {
    /// "MLCK": one chunk of a thread's stream
    pub const CHUNK: u32 = 0x4b434c4d;
    /// "MLMD": one module file
    pub const MODULE: u32 = 0x444d4c4d;
    /// "MLTB": one translation unit's site table
    pub const TABLE: u32 = 0x42544c4d;
    /// "MLRG": a process's shared memory
    pub const RING: u32 = 0x47524c4d;
    /// "MLWR": a message of, or to, a receiver of traces
    pub const WIRE: u32 = 0x52574c4d;
    /// "MLMS": one message on the collector's socket
    pub const MESSAGE: u32 = 0x534d4c4d;
    /// "MLBN": memory in which a program notes its blocks
    pub const BLOCK_NOTES: u32 = 0x4e424c4d;
}

/// ELF sections of an instrumented image, never touched at run time.
pub mod section {
    /// one 8-byte anchor per segment; a header word is the address of one
    pub const ANCHORS: &str = "memlode_seg";
    /// the site tables, one per translation unit
    pub const TABLES: &str = "memlode_tab";
    /// where each function that the pass has looked at is (SPEC.md §2.8)
    pub const FUNCTIONS: &str = "memlode_fun";
    /// those of the medium and large code models
    pub const FAR_FUNCTIONS: &str = "memlode_fun_far";
}

/// The contents of a section of a site table (SPEC.md §5.1). Readers skip those that they do not know.
pub mod table_section {
    /// the layouts of types (SPEC.md §2.3)
    pub const TYPES: u32 = 1;
    /// about how many lie between accesses (SPEC.md §2.4)
    pub const INSTRUCTIONS: u32 = 2;
    /// the loads on which addresses and stored data depend (SPEC.md §2.4)
    pub const FEEDS: u32 = 3;
    /// accesses of the unit that are not recorded, by reason
    pub const LEFT_OUT: u32 = 4;
    /// the user's rules and names of allocators, and whether the unit has matches for them
    pub const ASKED: u32 = 5;
    /// the loads on which the branches behind an access depend (SPEC.md §2.4)
    pub const BRANCHES: u32 = 6;
    /// which calls may come behind a segment (SPEC.md §2.5)
    pub const CALLS: u32 = 7;
    /// which of the values in feeds and branches are of the iteration before (SPEC.md §2.4)
    pub const EARLIER: u32 = 8;
    /// accesses that are executed with a segment and not recorded (SPEC.md §2.6)
    pub const UNRECORDED: u32 = 9;
    /// where the unit was compiled, and checksums of its files (SPEC.md §2.7)
    pub const SOURCES: u32 = 10;
    /// functions that return memory of no type (SPEC.md §2.9)
    pub const UNTYPED: u32 = 11;
    /// from here on: for trials and tests, and never given a meaning
    pub const PRIVATE: u32 = 0x10000;
}

/// Facts of a call (SPEC.md §2.5).
pub mod call_flag {
    /// it enters the function that it names, or none
    pub const EXACT: u32 = 1;
}

/// The contents of a section of a module file (SPEC.md §5.1). Readers skip those that they do not know.
pub mod module_section {
    /// functions of the image that memlode did not compile (SPEC.md §4.2)
    pub const FOREIGN: u32 = 1;
    /// instructions of an image that was sampled (SPEC.md §4.5)
    pub const SAMPLED: u32 = 2;
    /// from here on: for trials and tests, and never given a meaning
    pub const PRIVATE: u32 = 0x10000;
}

/// Properties of the section `foreign` of a module file, and of a function in it (bit sets).
pub mod foreign_flag {
    /// a function whose name is known only in its own unit
    pub const LOCAL: u8 = 1;
    /// of the section: the program is linked statically, so the C library is among its functions
    pub const LIBRARIES: u8 = 2;
}

/// Properties of an image that was sampled (bit set).
pub mod sampled_flag {
    /// it has debug information
    pub const DEBUG: u8 = 1;
    /// its file could not be read; behind the flags: why
    pub const UNREAD: u8 = 2;
}

/// Why the data of a sampled instruction has no type.
pub mod untyped {
    /// it has one, or a variable
    pub const TYPED: u8 = 0;
    /// `untyped.no_debug_information`
    pub const NO_DEBUG_INFORMATION: u8 = 1;
    /// of none that debug information knows
    pub const NO_FUNCTION: u8 = 2;
    /// its bytes are none that is known
    pub const NO_INSTRUCTION: u8 = 3;
    /// it touches none
    pub const NO_MEMORY: u8 = 4;
    /// no variable says what its register points to
    pub const UNKNOWN_POINTER: u8 = 5;
    /// to something without a type: `void \*`
    pub const UNTYPED_POINTER: u8 = 6;
    /// the frame, where no variable lies
    pub const FRAME: u8 = 7;
    /// of the thread's own, or that of which vectors have the addresses
    pub const OTHER_MEMORY: u8 = 8;
    /// where no variable lies
    pub const STATIC_MEMORY: u8 = 9;
    /// a register or return address that is saved or restored
    pub const STACK: u8 = 10;
}

/// Properties of a block in the section `blocks` of a chunk (bit set).
pub mod sampled_block_flag {
    /// it was mapped, and is no block of the heap
    pub const MAPPED: u8 = 1;
}

/// The contents of a section of a chunk (SPEC.md §5.1). Readers skip those that they do not know.
pub mod chunk_section {
    /// what only samples have: columns (SPEC.md §4.5)
    pub const SAMPLES: u32 = 1;
    /// where functions were called (SPEC.md §4.5)
    pub const CALL_PATHS: u32 = 2;
    /// blocks of memory that samples lie in (SPEC.md §4.5)
    pub const BLOCKS: u32 = 3;
    /// from here on: for trials and tests, and never given a meaning
    pub const PRIVATE: u32 = 0x10000;
}

/// A column of the section `samples` of a chunk: a number for each sample, 0 if it is not known, else 1 more than the value.
pub mod sample_column {
    /// events, or nanoseconds, that the sample stands for
    pub const WEIGHT: u32 = 1;
    /// 0 if the access's address is not known; the address of the access is 0 then
    pub const ADDRESS_KNOWN: u32 = 2;
    /// 1 if the address lies in the thread's stack
    pub const ON_STACK: u32 = 3;
    /// cycles that the access took
    pub const LATENCY: u32 = 4;
    /// where the data came from: the kernel's perf_mem_data_src
    pub const SOURCE: u32 = 5;
    /// processor
    pub const CPU: u32 = 6;
    /// size of the data's page
    pub const PAGE_BYTES: u32 = 7;
    /// index into the section `call_paths`
    pub const CALL_PATH: u32 = 8;
    /// index into the section `blocks`
    pub const BLOCK: u32 = 9;
    /// from here on: for trials and tests, and never given a meaning
    pub const PRIVATE: u32 = 0x10000;
}

/// A thread's stream: 8-byte words.
pub mod stream {
    /// `stream.word_bytes`
    pub const WORD_BYTES: u32 = 8;
    /// a header word has its upper 16 bits clear; other values are reserved
    pub const ADDRESS_BITS: u32 = 48;
    /// `stream.anchor_bytes`
    pub const ANCHOR_BYTES: u32 = 8;
    /// words behind a header; a longer segment is split by the pass
    pub const MAX_SEGMENT_WORDS: u32 = 4096;
    /// object of a create whose handle lay in memory that the new thread may have freed
    pub const UNKNOWN_HANDLE: u32 = 1;
}

/// The event that one step of a segment records. Word operands follow the header in the order of the ops.
pub mod op {
    /// site, address
    pub const ACCESS: u8 = 0;
    /// site, address, length: memset, and each side of memcpy or memmove
    pub const RANGE: u8 = 1;
    /// site, lanes, address; one mask word: lane i is at address + i \* bytes
    pub const MASKED: u8 = 2;
    /// site, lanes; one address word a lane, then one mask word
    pub const GATHER: u8 = 3;
    /// site, segment, word, distance: an access at a distance from a word of an earlier segment
    pub const DERIVED: u8 = 4;
    /// one word: the number of iterations; the rest of the segment are the strides of one iteration
    pub const REPEAT: u8 = 5;
    /// site, address, step: an access, its address a step further each time
    pub const STRIDE: u8 = 6;
    /// one word: address of the return-address slot (the frame's identity)
    pub const ENTER: u8 = 16;
    /// no word
    pub const EXIT: u8 = 17;
    /// one word, as enter: control came back by unwinding or longjmp
    pub const RESUME: u8 = 18;
    /// site; words base, bytes
    pub const ALLOC: u8 = 32;
    /// site; words base, count, element bytes
    pub const ALLOC_ARRAY: u8 = 33;
    /// site; words new base, bytes, old base
    pub const REALLOC: u8 = 34;
    /// site; word base
    pub const FREE: u8 = 35;
    /// site; words base, bytes
    pub const UNMAP: u8 = 36;
    /// words: the value that the access before moved, 8 bytes a word; for an update the old value, then the new one
    pub const VALUE: u8 = 48;
    /// one word: time stamp counter, read after the thread's acquisitions
    pub const STAMP: u8 = 49;
    /// sync, address of its object; one word, the time stamp counter: read behind an acquisition, in front of a release
    pub const SYNC: u8 = 50;
}

/// Events that order threads through objects. Odd ones release the thread's earlier accesses, even ones acquire those released through the object.
pub mod sync {
    /// an atomic operation that acquires
    pub const ACQUIRE: u8 = 0;
    /// an atomic operation that releases
    pub const RELEASE: u8 = 1;
    /// a mutex or another lock was taken
    pub const LOCK: u8 = 2;
    /// and is given back
    pub const UNLOCK: u8 = 3;
    /// the thread waited for a condition variable, a semaphore, or an action that is done once
    pub const WAIT: u8 = 4;
    /// and a waiting thread may go on
    pub const SIGNAL: u8 = 5;
    /// a barrier was left
    pub const LEAVE: u8 = 6;
    /// and somebody is there
    pub const ARRIVE: u8 = 7;
    /// a thread has ended; the object is its pthread_t
    pub const JOIN: u8 = 8;
    /// and one was created, just before the stamp
    pub const CREATE: u8 = 9;
}

/// The effect of a site on memory.
pub mod kind {
    /// `kind.load`
    pub const LOAD: u8 = 0;
    /// `kind.store`
    pub const STORE: u8 = 1;
    /// atomic read-modify-write
    pub const UPDATE: u8 = 2;
    /// `kind.alloc`
    pub const ALLOC: u8 = 3;
    /// `kind.free`
    pub const FREE: u8 = 4;
}

/// The evidence for a site's variable, type and member, best first.
pub mod evidence {
    /// `evidence.none`
    pub const NONE: u8 = 0;
    /// remembered from the unoptimised module, same scope, line, column and direction
    pub const SOURCE: u8 = 1;
    /// walk over debug records on the optimised module
    pub const DEBUG: u8 = 2;
    /// type-based alias tag alone
    pub const TBAA: u8 = 3;
    /// a type, a variable or a line only
    pub const PARTIAL: u8 = 4;
}

/// Properties of a site (bit set).
pub mod flag {
    /// the line is that of the nearest instruction that had one, or the access is a library function's
    pub const APPROXIMATE: u32 = 1;
    /// `flag.atomic`
    pub const ATOMIC: u32 = 2;
    /// `flag.volatile`
    pub const VOLATILE: u32 = 4;
    /// the address is based on a stack slot of the function
    pub const STACK: u32 = 8;
    /// the address is based on a global variable
    pub const GLOBAL: u32 = 16;
    /// one access of a vector register
    pub const VECTOR: u32 = 32;
    /// its value is recorded and is a floating-point number
    pub const FLOAT: u32 = 64;
    /// the address comes out of a loaded value: an index, a pointer
    pub const LOADED_ADDRESS: u32 = 128;
    /// and that out of one loaded the iteration before, as in a list; only with loaded_address
    pub const CHASED: u32 = 256;
    /// the address comes out of arithmetic that does more than count, and of no loaded value
    pub const COMPUTED_ADDRESS: u32 = 512;
    /// the program bypasses the caches, as by a streaming store
    pub const NON_TEMPORAL: u32 = 1024;
    /// atomic: later accesses see those before the release whose value it read
    pub const ACQUIRE: u32 = 2048;
    /// atomic: a thread that acquires its value sees the accesses before it
    pub const RELEASE: u32 = 4096;
    /// atomic: it is in the one order of all such accesses; a store empties the store buffer
    pub const SEQUENTIAL: u32 = 8192;
    /// a full fence stands beside it, before the next access or behind the one before
    pub const FENCED: u32 = 16384;
    /// a load that only requests a line: nothing waits for it
    pub const PREFETCH: u32 = 32768;
    /// in a loop that only waits for another thread: an iteration that changes nothing means nothing else
    pub const POLL: u32 = 65536;
    /// it adds to its bytes, or is the load or the store of such an addition: nothing else uses the value
    pub const ADDS: u32 = 131072;
}

/// The form of a type, in the section `types` of a site table.
pub mod type_form {
    /// a type without members that is none of the others
    pub const SCALAR: u8 = 0;
    /// or a reference
    pub const POINTER: u8 = 1;
    /// `type_form.enumeration`
    pub const ENUMERATION: u8 = 2;
    /// behind the name: opt type of the elements; list of extents, 0 if one is not known
    pub const ARRAY: u8 = 3;
    /// behind the name: list of members; as of the three that follow
    pub const STRUCTURE: u8 = 4;
    /// `type_form.class`
    pub const CLASS: u8 = 5;
    /// `type_form.union`
    pub const UNION: u8 = 6;
    /// one of several, selected by a discriminant: a part of a Rust enum
    pub const VARIANTS: u8 = 7;
    /// of a Fortran array whose elements are elsewhere
    pub const DESCRIPTOR: u8 = 8;
}

/// Properties of a type in the section `types` (bit set); readers ignore those they do not know.
pub mod type_flag {
    /// declared only: its members are not known
    pub const INCOMPLETE: u32 = 1;
    /// a function of the unit accesses one, so its uses of the members' addresses are known
    pub const WATCHED: u32 = 2;
    /// only if watched: a pointer to one is used as one to another record, or the other way round
    pub const CAST: u32 = 4;
}

/// The properties of a member of a type, in the section `types` of a site table.
pub mod member_kind {
    /// `member_kind.field`
    pub const FIELD: u8 = 0;
    /// a base class
    pub const BASE: u8 = 1;
    /// a base class whose place is in the virtual table; its offset is 0
    pub const VIRTUAL_BASE: u8 = 2;
    /// the pointer to the virtual table
    pub const VPTR: u8 = 3;
    /// of variants: the member that selects one
    pub const DISCRIMINANT: u8 = 4;
    /// the variants of a record that has some
    pub const VARIANTS: u8 = 5;
    /// one of them; behind it: 1 and the value of the discriminant that means it, or 0
    pub const VARIANT: u8 = 6;
}

/// Properties of a member of a type (bit set); readers ignore those they do not know.
pub mod member_flag {
    /// `member_flag.bit_field`
    pub const BIT_FIELD: u32 = 1;
    /// its address is passed to another function, stored, returned or converted to a number
    pub const ESCAPES: u32 = 2;
}

/// Properties of a translation unit's table (bit set); readers ignore those they do not know.
pub mod table_flag {
    /// the user's filter left events out: not every access of the unit is recorded
    pub const FILTERED: u16 = 1;
    /// recorded before optimisation: the accesses of the source, not those of the code that ran
    pub const AS_WRITTEN: u16 = 2;
    /// without -g, or with -g1: variables, types and members are not known
    pub const NAMELESS: u16 = 4;
}

/// Why something that touches memory is not recorded.
pub mod left_out {
    /// inline assembly that may touch more than its operands
    pub const ASSEMBLY: u8 = 0;
    /// the write side of a by-value argument's copy
    pub const BY_VALUE: u8 = 1;
    /// another address space: %fs and %gs on x86
    pub const ADDRESS_SPACE: u8 = 2;
    /// a vector of more than 64 lanes under a mask, or of a length that is not known when compiling
    pub const VECTOR: u8 = 3;
    /// an operation of the processor that the pass does not know
    pub const INTRINSIC: u8 = 4;
    /// an assembly that jumps: the first records at its labels may come late
    pub const ASSEMBLY_JUMP: u8 = 5;
    /// accesses of a library function behind a tail call
    pub const TAIL_CALL: u8 = 6;
    /// a whole function, naked or otherwise out of reach
    pub const FUNCTION: u8 = 7;
    /// left out by the user's filter
    pub const FILTER: u8 = 8;
    /// a function of another unit: if no table knows it, memlode did not compile it
    pub const CALL: u8 = 9;
}

/// Shared memory: one memfd per process, a process header and then ring regions.
pub mod ring {
    /// capacity before the room test fails
    pub const CHUNK_BYTES: u32 = 0x10000;
    /// set in a cursor that lies inside a chunk; clear in the slack behind it
    pub const ROOM_BIT: u32 = 0x10000;
    /// chunks per ring; region = (2 \* chunks + 2) \* chunk_bytes
    pub const CHUNKS: u32 = 16;
    /// ring slots per process
    pub const RINGS: u32 = 4096;
    /// file offset of ring 0; ring i is one region further each
    pub const FIRST_RING_OFFSET: u32 = 0x10000;
    /// set in end\[k]: the chunk was given up; its last segment may lack words
    pub const END_CUT_SHORT: u32 = 1;
    /// set in end\[k]: recording was switched off behind this chunk
    pub const END_GAP: u32 = 2;
    /// set in end\[k]: recording was off in it; it holds allocations only
    pub const END_DORMANT: u32 = 4;
    /// the default wait for a collector without a sign of life: longer than that for a receiver
    pub const PATIENCE_MS: u32 = 90000;
    /// `ring.slot_free`
    pub const SLOT_FREE: u32 = 0;
    /// the program is filling in the ring's header
    pub const SLOT_CLAIMED: u32 = 1;
    /// `ring.slot_active`
    pub const SLOT_ACTIVE: u32 = 2;
    /// the thread is gone; the collector has chunks to read
    pub const SLOT_DRAINING: u32 = 3;
}

/// Memory in which a program that `memlode sample` started notes its blocks: one memfd, with a header, a table of call paths, and a ring of notes.
pub mod block_notes {
    /// entries of the table: open, the first place by bits 16 to 31 of the key
    pub const PATHS: u32 = 0xffff;
    /// calls of a path, the innermost
    pub const PATH_CALLS: u32 = 24;
    /// file offset of path 0
    pub const FIRST_PATH_OFFSET: u32 = 0x1000;
    /// notes in the ring
    pub const NOTES: u32 = 0x40000;
    /// file offset of note 0
    pub const FIRST_NOTE_OFFSET: u32 = 0xd01000;
    /// length of all
    pub const BYTES: u32 = 0x1701000;
}

/// The kinds of notes of blocks.
pub mod block_note {
    /// a block of the heap was taken
    pub const TAKEN: u16 = 0;
    /// and given back; its length is 0
    pub const FREED: u16 = 1;
    /// memory was mapped
    pub const MAPPED: u16 = 2;
    /// and unmapped
    pub const UNMAPPED: u16 = 3;
    /// the path of a block whose calls found no room
    pub const NO_PATH: u16 = 0xffff;
}

/// Why nothing is to be recorded (bit set): bits of a process header's `dormant`.
pub mod off {
    /// there is no collector; set by the program
    pub const NOBODY: u32 = 1;
    /// between two bursts; set by the collector, as those that follow
    pub const PACE: u32 = 2;
    /// the user stopped it
    pub const USER: u32 = 4;
    /// before or behind the requested stretch
    pub const WINDOW: u32 = 8;
    /// outside the requested regions; set by the program
    pub const REGION: u32 = 16;
    /// it will not be on again: not even allocations matter
    pub const OVER: u32 = 32;
}

/// Requests on the collector's SOCK_SEQPACKET Unix socket. One request a connection; a reply ends it.
pub mod message {
    /// reply carries the memfd
    pub const HELLO: u16 = 1;
    /// reply after the module's table is known
    pub const MODULE_LOAD: u16 = 2;
    /// reply after everything recorded so far has been read
    pub const MODULE_UNLOAD: u16 = 3;
    /// `message.status_ok`
    pub const STATUS_OK: u16 = 0;
    /// `message.status_refused`
    pub const STATUS_REFUSED: u16 = 1;
    /// `message.status_version`
    pub const STATUS_VERSION: u16 = 2;
    /// `message.path_bytes`
    pub const PATH_BYTES: u16 = 4096;
    /// `message.build_id_bytes`
    pub const BUILD_ID_BYTES: u16 = 32;
}

/// Properties of a chunk (bit set).
pub mod chunk_flag {
    /// recording had been off: accesses since the stream's chunk before are unknown, and so is the stack
    pub const AFTER_GAP: u32 = 1;
    /// recording was off: the chunk has only allocations, without the stack
    pub const DORMANT: u32 = 2;
}

/// A trace on its way to `memlode serve` (SPEC.md §6): what a wire_frame holds.
pub mod wire {
    /// thread file a.b: payload at offset `at`, which is its end
    pub const APPEND: u16 = 0;
    /// events.ndjson, the same
    pub const APPEND_EVENTS: u16 = 1;
    /// module file a: a piece of it
    pub const PUT_MODULE: u16 = 2;
    /// manifest.json: a piece of it
    pub const PUT_MANIFEST: u16 = 3;
    /// nothing happened lately
    pub const ALIVE: u16 = 4;
    /// all has been sent; the reply is wire_status.ok once it is stored
    pub const FINISH: u16 = 5;
    /// chunks.mlx, as append_events
    pub const APPEND_INDEX: u16 = 6;
    /// flag of a put
    pub const LAST_PIECE: u16 = 1;
}

/// The answers of a receiver, in a wire_reply.
pub mod wire_status {
    /// `wire_status.ok`
    pub const OK: u16 = 0;
    /// the payload is a sentence; the connection ends
    pub const REFUSED: u16 = 1;
    /// the payload is a nonce of 32 bytes
    pub const CHALLENGE: u16 = 2;
}

/// The ways to pack a chunk's payload.
pub mod codec {
    /// not packed
    pub const STORED: u8 = 0;
    /// one zstd frame
    pub const ZSTD: u8 = 1;
}

/// Limits that a reader may rely on; a file beyond it is damaged.
pub mod limit {
    /// words of the stream in one chunk
    pub const CHUNK_WORDS: u64 = 0x100000;
    /// accesses one chunk expands to
    pub const CHUNK_ACCESSES: u64 = 0x4000000;
    /// `limit.chunk_unpacked_bytes`
    pub const CHUNK_UNPACKED_BYTES: u64 = 0x4000000;
    /// manifest.json
    pub const MANIFEST_BYTES: u64 = 0x10000000;
    /// a line of events.ndjson
    pub const EVENT_BYTES: u64 = 0x1000000;
    /// a module file
    pub const MODULE_FILE_BYTES: u64 = 0x10000000;
    /// a module's payload unpacks to at most this many times its bytes,
    pub const MODULE_UNPACKING: u64 = 64;
    /// or to this many bytes
    pub const MODULE_SMALL_BYTES: u64 = 0x100000;
    /// of one trace; those that come later are not recorded
    pub const PROCESSES: u64 = 0x10000;
    /// frames of a stack snapshot: the innermost are kept
    pub const FRAMES: u64 = 0x100000;
    /// payload of one wire_frame
    pub const WIRE_PAYLOAD_BYTES: u64 = 0x100000;
    /// a file that is put in pieces
    pub const WIRE_PUT_BYTES: u64 = 0x10000000;
    /// files of one trace
    pub const WIRE_FILES: u64 = 0x100000;
    /// payload of a wire_reply
    pub const WIRE_SENTENCE_BYTES: u64 = 0x1000;
    /// length of one range; a longer one was not carried out, and counts as its first byte
    pub const RANGE_BYTES: u64 = 0x1000000000000;
    /// `limit.lanes`
    pub const LANES: u64 = 64;
}

/// One segment of one function. The header word in a stream is this structure's load address.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// start of the translation unit's table, relative to this field's own address
    pub table_rel: i32,
    /// index into that table's segments
    pub segment: u32,
}

impl Anchor {
    /// Size in memory and in a file.
    pub const BYTES: usize = 8;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            table_rel: i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            segment: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&self.table_rel.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.segment.to_le_bytes());
        bytes
    }
}

impl Default for Anchor {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<Anchor>() == Anchor::BYTES);
const _: () = assert!(std::mem::offset_of!(Anchor, table_rel) == 0);
const _: () = assert!(std::mem::offset_of!(Anchor, segment) == 4);

/// Start of a translation unit's site table; LEB128 payload follows.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableHeader {
    /// `magic`
    pub magic: u32,
    /// `version`
    pub version: u16,
    /// table_flag.\*
    pub flags: u16,
    /// length of the payload, without this header and without tail padding
    pub payload_bytes: u32,
    /// CRC-32 (IEEE) of the payload
    pub crc32: u32,
}

impl TableHeader {
    /// Size in memory and in a file.
    pub const BYTES: usize = 16;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            magic: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            version: u16::from_le_bytes([bytes[4], bytes[5]]),
            flags: u16::from_le_bytes([bytes[6], bytes[7]]),
            payload_bytes: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            crc32: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&self.magic.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.flags.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.crc32.to_le_bytes());
        bytes
    }
}

impl Default for TableHeader {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<TableHeader>() == TableHeader::BYTES);
const _: () = assert!(std::mem::offset_of!(TableHeader, magic) == 0);
const _: () = assert!(std::mem::offset_of!(TableHeader, version) == 4);
const _: () = assert!(std::mem::offset_of!(TableHeader, flags) == 6);
const _: () = assert!(std::mem::offset_of!(TableHeader, payload_bytes) == 8);
const _: () = assert!(std::mem::offset_of!(TableHeader, crc32) == 12);

/// Start of one chunk in threads/\*.mlt; payload_bytes of payload follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// `magic`
    pub magic: u32,
    /// version.trace
    pub version: u16,
    /// `codec`
    pub codec: u8,
    /// which of its thread's streams: signal handlers write to streams of their own
    pub stream: u8,
    /// index of the process in the trace
    pub process: u32,
    /// index of the thread in its process
    pub thread: u32,
    /// 0, 1, 2, … in each thread's file
    pub sequence: u32,
    /// words of the stream in this chunk
    pub raw_words: u32,
    /// segment executions in this chunk
    pub segments: u32,
    /// packed length
    pub payload_bytes: u32,
    /// length after unpacking
    pub unpacked_bytes: u32,
    /// CRC-32 (IEEE) of the packed payload
    pub payload_crc32: u32,
    /// CRC-32 (IEEE) of this header with this field zero
    pub header_crc32: u32,
    /// chunk_flag.\*
    pub flags: u32,
    /// access, range, masked and gather ops executed
    pub accesses: u64,
    /// time stamp counter when the chunk's first word could be written
    pub first_stamp: u64,
    /// time stamp counter when the chunk was handed over
    pub last_stamp: u64,
}

impl ChunkHeader {
    /// Size in memory and in a file.
    pub const BYTES: usize = 72;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            magic: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            version: u16::from_le_bytes([bytes[4], bytes[5]]),
            codec: u8::from_le_bytes([bytes[6]]),
            stream: u8::from_le_bytes([bytes[7]]),
            process: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            thread: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
            sequence: u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]),
            raw_words: u32::from_le_bytes([bytes[20], bytes[21], bytes[22], bytes[23]]),
            segments: u32::from_le_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]),
            payload_bytes: u32::from_le_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]),
            unpacked_bytes: u32::from_le_bytes([bytes[32], bytes[33], bytes[34], bytes[35]]),
            payload_crc32: u32::from_le_bytes([bytes[36], bytes[37], bytes[38], bytes[39]]),
            header_crc32: u32::from_le_bytes([bytes[40], bytes[41], bytes[42], bytes[43]]),
            flags: u32::from_le_bytes([bytes[44], bytes[45], bytes[46], bytes[47]]),
            accesses: u64::from_le_bytes([bytes[48], bytes[49], bytes[50], bytes[51], bytes[52], bytes[53], bytes[54], bytes[55]]),
            first_stamp: u64::from_le_bytes([bytes[56], bytes[57], bytes[58], bytes[59], bytes[60], bytes[61], bytes[62], bytes[63]]),
            last_stamp: u64::from_le_bytes([bytes[64], bytes[65], bytes[66], bytes[67], bytes[68], bytes[69], bytes[70], bytes[71]]),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&self.magic.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..7].copy_from_slice(&self.codec.to_le_bytes());
        bytes[7..8].copy_from_slice(&self.stream.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.process.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.thread.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.raw_words.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.segments.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.unpacked_bytes.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.payload_crc32.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.header_crc32.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.flags.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.accesses.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.first_stamp.to_le_bytes());
        bytes[64..72].copy_from_slice(&self.last_stamp.to_le_bytes());
        bytes
    }
}

impl Default for ChunkHeader {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<ChunkHeader>() == ChunkHeader::BYTES);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, magic) == 0);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, version) == 4);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, codec) == 6);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, stream) == 7);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, process) == 8);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, thread) == 12);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, sequence) == 16);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, raw_words) == 20);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, segments) == 24);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, payload_bytes) == 28);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, unpacked_bytes) == 32);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, payload_crc32) == 36);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, header_crc32) == 40);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, flags) == 44);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, accesses) == 48);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, first_stamp) == 56);
const _: () = assert!(std::mem::offset_of!(ChunkHeader, last_stamp) == 64);

/// Start of a modules/\*.mlm; payload_bytes of payload follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleHeader {
    /// `magic`
    pub magic: u32,
    /// version.trace
    pub version: u16,
    /// `codec`
    pub codec: u8,
    /// zero
    pub flags: u8,
    /// packed length
    pub payload_bytes: u64,
    /// length after unpacking
    pub unpacked_bytes: u64,
    /// CRC-32 (IEEE) of the packed payload
    pub payload_crc32: u32,
    /// CRC-32 (IEEE) of this header with this field zero
    pub header_crc32: u32,
}

impl ModuleHeader {
    /// Size in memory and in a file.
    pub const BYTES: usize = 32;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            magic: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            version: u16::from_le_bytes([bytes[4], bytes[5]]),
            codec: u8::from_le_bytes([bytes[6]]),
            flags: u8::from_le_bytes([bytes[7]]),
            payload_bytes: u64::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]]),
            unpacked_bytes: u64::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19], bytes[20], bytes[21], bytes[22], bytes[23]]),
            payload_crc32: u32::from_le_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]),
            header_crc32: u32::from_le_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&self.magic.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..7].copy_from_slice(&self.codec.to_le_bytes());
        bytes[7..8].copy_from_slice(&self.flags.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.unpacked_bytes.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.payload_crc32.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.header_crc32.to_le_bytes());
        bytes
    }
}

impl Default for ModuleHeader {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<ModuleHeader>() == ModuleHeader::BYTES);
const _: () = assert!(std::mem::offset_of!(ModuleHeader, magic) == 0);
const _: () = assert!(std::mem::offset_of!(ModuleHeader, version) == 4);
const _: () = assert!(std::mem::offset_of!(ModuleHeader, codec) == 6);
const _: () = assert!(std::mem::offset_of!(ModuleHeader, flags) == 7);
const _: () = assert!(std::mem::offset_of!(ModuleHeader, payload_bytes) == 8);
const _: () = assert!(std::mem::offset_of!(ModuleHeader, unpacked_bytes) == 16);
const _: () = assert!(std::mem::offset_of!(ModuleHeader, payload_crc32) == 24);
const _: () = assert!(std::mem::offset_of!(ModuleHeader, header_crc32) == 28);

/// Offset 0 of the memory for notes of blocks.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockNotesHeader {
    /// `magic`
    pub magic: u32,
    /// version.block_notes
    pub version: u16,
    /// zero
    pub reserved: u16,
    /// blocks of fewer bytes are not noted
    pub least: u64,
    /// notes for which there was no room
    pub lost: u64,
    /// the process that reads notes; 0: nobody does, and none are made
    pub reader: u32,
    /// each side's number has its own cache line
    pub pad0: [u8; 36],
    /// notes that were begun, by all programs
    pub head: u64,
    /// `pad1`
    pub pad1: [u8; 56],
    /// notes that were read; their places may be used again
    pub tail: u64,
}

impl BlockNotesHeader {
    /// Size in memory and in a file.
    pub const BYTES: usize = 136;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            magic: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            version: u16::from_le_bytes([bytes[4], bytes[5]]),
            reserved: u16::from_le_bytes([bytes[6], bytes[7]]),
            least: u64::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]]),
            lost: u64::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19], bytes[20], bytes[21], bytes[22], bytes[23]]),
            reader: u32::from_le_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]),
            pad0: std::array::from_fn::<_, 36, _>(|i| bytes[28 + i]),
            head: u64::from_le_bytes([bytes[64], bytes[65], bytes[66], bytes[67], bytes[68], bytes[69], bytes[70], bytes[71]]),
            pad1: std::array::from_fn::<_, 56, _>(|i| bytes[72 + i]),
            tail: u64::from_le_bytes([bytes[128], bytes[129], bytes[130], bytes[131], bytes[132], bytes[133], bytes[134], bytes[135]]),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&self.magic.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.reserved.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.least.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.lost.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.reader.to_le_bytes());
        bytes[28..64].copy_from_slice(&self.pad0);
        bytes[64..72].copy_from_slice(&self.head.to_le_bytes());
        bytes[72..128].copy_from_slice(&self.pad1);
        bytes[128..136].copy_from_slice(&self.tail.to_le_bytes());
        bytes
    }
}

impl Default for BlockNotesHeader {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<BlockNotesHeader>() == BlockNotesHeader::BYTES);
const _: () = assert!(std::mem::offset_of!(BlockNotesHeader, magic) == 0);
const _: () = assert!(std::mem::offset_of!(BlockNotesHeader, version) == 4);
const _: () = assert!(std::mem::offset_of!(BlockNotesHeader, reserved) == 6);
const _: () = assert!(std::mem::offset_of!(BlockNotesHeader, least) == 8);
const _: () = assert!(std::mem::offset_of!(BlockNotesHeader, lost) == 16);
const _: () = assert!(std::mem::offset_of!(BlockNotesHeader, reader) == 24);
const _: () = assert!(std::mem::offset_of!(BlockNotesHeader, pad0) == 28);
const _: () = assert!(std::mem::offset_of!(BlockNotesHeader, head) == 64);
const _: () = assert!(std::mem::offset_of!(BlockNotesHeader, pad1) == 72);
const _: () = assert!(std::mem::offset_of!(BlockNotesHeader, tail) == 128);

/// Calls that led to a block.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockPath {
    /// hash of the calls, set first; 0 of an entry that is free
    pub key: u64,
    /// calls, set last
    pub calls: u32,
    /// zero
    pub reserved: u32,
    /// return addresses, the innermost first
    pub at: [u64; 24],
}

impl BlockPath {
    /// Size in memory and in a file.
    pub const BYTES: usize = 208;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            key: u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]),
            calls: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            reserved: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
            at: std::array::from_fn::<_, 24, _>(|i| u64::from_le_bytes(std::array::from_fn(|k| bytes[16 + 8 * i + k]))),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.calls.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.reserved.to_le_bytes());
        for (i, bytes) in bytes[16..208].chunks_exact_mut(8).enumerate() { bytes.copy_from_slice(&self.at[i].to_le_bytes()); }
        bytes
    }
}

impl Default for BlockPath {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<BlockPath>() == BlockPath::BYTES);
const _: () = assert!(std::mem::offset_of!(BlockPath, key) == 0);
const _: () = assert!(std::mem::offset_of!(BlockPath, calls) == 8);
const _: () = assert!(std::mem::offset_of!(BlockPath, reserved) == 12);
const _: () = assert!(std::mem::offset_of!(BlockPath, at) == 16);

/// A note. The number n of a note, from 0, is one of its place, n modulo block_notes.notes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockNote {
    /// 0x9E3779B97F4A7C15 times (time ^ address <<< 17 ^ bytes <<< 34 ^ last <<< 51), plus n + 1; set last
    pub seal: u64,
    /// nanoseconds of CLOCK_MONOTONIC
    pub time: u64,
    /// `address`
    pub address: u64,
    /// `bytes`
    pub bytes: u64,
    /// the process; `last` is pid << 32 | kind << 16 | path
    pub pid: u32,
    /// block_note.\*
    pub kind: u16,
    /// index of the path, or block_note.no_path
    pub path: u16,
}

impl BlockNote {
    /// Size in memory and in a file.
    pub const BYTES: usize = 40;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            seal: u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]),
            time: u64::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]]),
            address: u64::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19], bytes[20], bytes[21], bytes[22], bytes[23]]),
            bytes: u64::from_le_bytes([bytes[24], bytes[25], bytes[26], bytes[27], bytes[28], bytes[29], bytes[30], bytes[31]]),
            pid: u32::from_le_bytes([bytes[32], bytes[33], bytes[34], bytes[35]]),
            kind: u16::from_le_bytes([bytes[36], bytes[37]]),
            path: u16::from_le_bytes([bytes[38], bytes[39]]),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..8].copy_from_slice(&self.seal.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.time.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.address.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.pid.to_le_bytes());
        bytes[36..38].copy_from_slice(&self.kind.to_le_bytes());
        bytes[38..40].copy_from_slice(&self.path.to_le_bytes());
        bytes
    }
}

impl Default for BlockNote {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<BlockNote>() == BlockNote::BYTES);
const _: () = assert!(std::mem::offset_of!(BlockNote, seal) == 0);
const _: () = assert!(std::mem::offset_of!(BlockNote, time) == 8);
const _: () = assert!(std::mem::offset_of!(BlockNote, address) == 16);
const _: () = assert!(std::mem::offset_of!(BlockNote, bytes) == 24);
const _: () = assert!(std::mem::offset_of!(BlockNote, pid) == 32);
const _: () = assert!(std::mem::offset_of!(BlockNote, kind) == 36);
const _: () = assert!(std::mem::offset_of!(BlockNote, path) == 38);

/// Offset 0 of a process's shared memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessHeader {
    /// `magic`
    pub magic: u32,
    /// version.ring
    pub version: u16,
    /// zero
    pub reserved: u16,
    /// `pid`
    pub pid: u32,
    /// index of the process in the trace
    pub process: u32,
    /// ring slots in this memory
    pub ring_count: u32,
    /// chunks per ring
    pub chunks: u32,
    /// futex: bumped by a producer that wakes the collector: it handed over the fourth chunk that waits, or can do nothing else
    pub doorbell: u32,
    /// not 0 while the collector waits on the doorbell
    pub collector_asleep: u32,
    /// bumped by the collector at least every second
    pub heartbeat: u32,
    /// threads that found no free ring: their events are not recorded
    pub unregistered_threads: u32,
    /// kernel id of the thread that ran the exit handlers, 0 before
    pub exiting_thread: u32,
    /// the time for which a program waits for a collector whose heartbeat has stopped; 0: for ever
    pub patience_ms: u32,
    /// source of ring generations
    pub generation: u64,
    /// not 0 once the program went on without its collector, which had shown no sign of life for that time
    pub given_up: u32,
    /// not 0 while the program is about to end, or to become another one, regularly
    pub exits: u32,
    /// not 0 once a thread may be cancelled at any instruction
    pub cancels: u32,
    /// not 0 once the program has forbidden itself system calls: later accesses are not recorded
    pub sealed: u32,
    /// children that it has forked and that did not find the collector: they are not recorded
    pub lost_children: u32,
    /// not 0 once another copy of the runtime has joined: a thread may have rings of both
    pub copies: u32,
    /// tasks that share its memory and are not its threads: their accesses are not recorded, nor those of the thread whose data they share meanwhile
    pub foreign_tasks: u32,
    /// the fields behind it are read often and written rarely, so they have their own cache line
    pub pad0: [u8; 44],
    /// off.\*; not 0 while nothing is to be recorded, and less than any address then; the program sees this page twice
    pub dormant: u64,
    /// not 0 if dormant was ever not 0; it is set before dormant is
    pub was_dormant: u32,
    /// zero
    pub reserved3: u32,
    /// names of the regions to be recorded, each ended by a zero; empty: everything is
    pub regions: [u8; 256],
}

impl ProcessHeader {
    /// Size in memory and in a file.
    pub const BYTES: usize = 400;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            magic: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            version: u16::from_le_bytes([bytes[4], bytes[5]]),
            reserved: u16::from_le_bytes([bytes[6], bytes[7]]),
            pid: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            process: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
            ring_count: u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]),
            chunks: u32::from_le_bytes([bytes[20], bytes[21], bytes[22], bytes[23]]),
            doorbell: u32::from_le_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]),
            collector_asleep: u32::from_le_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]),
            heartbeat: u32::from_le_bytes([bytes[32], bytes[33], bytes[34], bytes[35]]),
            unregistered_threads: u32::from_le_bytes([bytes[36], bytes[37], bytes[38], bytes[39]]),
            exiting_thread: u32::from_le_bytes([bytes[40], bytes[41], bytes[42], bytes[43]]),
            patience_ms: u32::from_le_bytes([bytes[44], bytes[45], bytes[46], bytes[47]]),
            generation: u64::from_le_bytes([bytes[48], bytes[49], bytes[50], bytes[51], bytes[52], bytes[53], bytes[54], bytes[55]]),
            given_up: u32::from_le_bytes([bytes[56], bytes[57], bytes[58], bytes[59]]),
            exits: u32::from_le_bytes([bytes[60], bytes[61], bytes[62], bytes[63]]),
            cancels: u32::from_le_bytes([bytes[64], bytes[65], bytes[66], bytes[67]]),
            sealed: u32::from_le_bytes([bytes[68], bytes[69], bytes[70], bytes[71]]),
            lost_children: u32::from_le_bytes([bytes[72], bytes[73], bytes[74], bytes[75]]),
            copies: u32::from_le_bytes([bytes[76], bytes[77], bytes[78], bytes[79]]),
            foreign_tasks: u32::from_le_bytes([bytes[80], bytes[81], bytes[82], bytes[83]]),
            pad0: std::array::from_fn::<_, 44, _>(|i| bytes[84 + i]),
            dormant: u64::from_le_bytes([bytes[128], bytes[129], bytes[130], bytes[131], bytes[132], bytes[133], bytes[134], bytes[135]]),
            was_dormant: u32::from_le_bytes([bytes[136], bytes[137], bytes[138], bytes[139]]),
            reserved3: u32::from_le_bytes([bytes[140], bytes[141], bytes[142], bytes[143]]),
            regions: std::array::from_fn::<_, 256, _>(|i| bytes[144 + i]),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&self.magic.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.reserved.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.pid.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.process.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.ring_count.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.chunks.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.doorbell.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.collector_asleep.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.heartbeat.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.unregistered_threads.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.exiting_thread.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.patience_ms.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.generation.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.given_up.to_le_bytes());
        bytes[60..64].copy_from_slice(&self.exits.to_le_bytes());
        bytes[64..68].copy_from_slice(&self.cancels.to_le_bytes());
        bytes[68..72].copy_from_slice(&self.sealed.to_le_bytes());
        bytes[72..76].copy_from_slice(&self.lost_children.to_le_bytes());
        bytes[76..80].copy_from_slice(&self.copies.to_le_bytes());
        bytes[80..84].copy_from_slice(&self.foreign_tasks.to_le_bytes());
        bytes[84..128].copy_from_slice(&self.pad0);
        bytes[128..136].copy_from_slice(&self.dormant.to_le_bytes());
        bytes[136..140].copy_from_slice(&self.was_dormant.to_le_bytes());
        bytes[140..144].copy_from_slice(&self.reserved3.to_le_bytes());
        bytes[144..400].copy_from_slice(&self.regions);
        bytes
    }
}

impl Default for ProcessHeader {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<ProcessHeader>() == ProcessHeader::BYTES);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, magic) == 0);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, version) == 4);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, reserved) == 6);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, pid) == 8);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, process) == 12);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, ring_count) == 16);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, chunks) == 20);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, doorbell) == 24);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, collector_asleep) == 28);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, heartbeat) == 32);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, unregistered_threads) == 36);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, exiting_thread) == 40);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, patience_ms) == 44);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, generation) == 48);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, given_up) == 56);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, exits) == 60);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, cancels) == 64);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, sealed) == 68);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, lost_children) == 72);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, copies) == 76);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, foreign_tasks) == 80);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, pad0) == 84);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, dormant) == 128);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, was_dormant) == 136);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, reserved3) == 140);
const _: () = assert!(std::mem::offset_of!(ProcessHeader, regions) == 144);

/// Offset 0 of a ring region. Chunk k starts at (2 \* k + 1) \* chunk_bytes; slack of the same size follows each.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingHeader {
    /// ring.slot_\*
    pub state: u32,
    /// kernel thread id
    pub tid: u32,
    /// larger is younger; distinguishes two threads that had the same id
    pub generation: u64,
    /// generation of the first ring of the same thread, which has a second one for its signal handlers
    pub owner: u64,
    /// 1 while a signal handler runs that writes elsewhere: the last segment here may lack words
    pub interrupted: u32,
    /// 1 more than the number of the chunk that was last begun while recording was off; 0: none was
    pub dormant_chunk: u32,
    /// the end of the last segment that is known to be whole: number of its chunk << 32 | bytes in it
    pub settled: u64,
    /// not 0 if the thread had ended by itself before its process did
    pub ended: u32,
    /// zero
    pub reserved: u32,
    /// `pad0`
    pub pad0: [u8; 16],
    /// chunks handed over so far (free running); written by the program
    pub head: u32,
    /// `pad1`
    pub pad1: [u8; 60],
    /// chunks consumed so far (free running) and futex; written by the collector
    pub tail: u32,
    /// 1 while the program waits for tail to move
    pub producer_waits: u32,
    /// `pad2`
    pub pad2: [u8; 56],
    /// bytes used in each chunk, slack included, or'ed with end_\*; valid once handed over
    pub end: [u32; 64],
    /// time stamp counter when the chunk was taken
    pub first_stamp: [u64; 64],
    /// time stamp counter when it was handed over
    pub last_stamp: [u64; 64],
}

impl RingHeader {
    /// Size in memory and in a file.
    pub const BYTES: usize = 1472;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            state: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            tid: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            generation: u64::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]]),
            owner: u64::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19], bytes[20], bytes[21], bytes[22], bytes[23]]),
            interrupted: u32::from_le_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]),
            dormant_chunk: u32::from_le_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]),
            settled: u64::from_le_bytes([bytes[32], bytes[33], bytes[34], bytes[35], bytes[36], bytes[37], bytes[38], bytes[39]]),
            ended: u32::from_le_bytes([bytes[40], bytes[41], bytes[42], bytes[43]]),
            reserved: u32::from_le_bytes([bytes[44], bytes[45], bytes[46], bytes[47]]),
            pad0: std::array::from_fn::<_, 16, _>(|i| bytes[48 + i]),
            head: u32::from_le_bytes([bytes[64], bytes[65], bytes[66], bytes[67]]),
            pad1: std::array::from_fn::<_, 60, _>(|i| bytes[68 + i]),
            tail: u32::from_le_bytes([bytes[128], bytes[129], bytes[130], bytes[131]]),
            producer_waits: u32::from_le_bytes([bytes[132], bytes[133], bytes[134], bytes[135]]),
            pad2: std::array::from_fn::<_, 56, _>(|i| bytes[136 + i]),
            end: std::array::from_fn::<_, 64, _>(|i| u32::from_le_bytes(std::array::from_fn(|k| bytes[192 + 4 * i + k]))),
            first_stamp: std::array::from_fn::<_, 64, _>(|i| u64::from_le_bytes(std::array::from_fn(|k| bytes[448 + 8 * i + k]))),
            last_stamp: std::array::from_fn::<_, 64, _>(|i| u64::from_le_bytes(std::array::from_fn(|k| bytes[960 + 8 * i + k]))),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&self.state.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.tid.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.generation.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.owner.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.interrupted.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.dormant_chunk.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.settled.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.ended.to_le_bytes());
        bytes[44..48].copy_from_slice(&self.reserved.to_le_bytes());
        bytes[48..64].copy_from_slice(&self.pad0);
        bytes[64..68].copy_from_slice(&self.head.to_le_bytes());
        bytes[68..128].copy_from_slice(&self.pad1);
        bytes[128..132].copy_from_slice(&self.tail.to_le_bytes());
        bytes[132..136].copy_from_slice(&self.producer_waits.to_le_bytes());
        bytes[136..192].copy_from_slice(&self.pad2);
        for (i, bytes) in bytes[192..448].chunks_exact_mut(4).enumerate() { bytes.copy_from_slice(&self.end[i].to_le_bytes()); }
        for (i, bytes) in bytes[448..960].chunks_exact_mut(8).enumerate() { bytes.copy_from_slice(&self.first_stamp[i].to_le_bytes()); }
        for (i, bytes) in bytes[960..1472].chunks_exact_mut(8).enumerate() { bytes.copy_from_slice(&self.last_stamp[i].to_le_bytes()); }
        bytes
    }
}

impl Default for RingHeader {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<RingHeader>() == RingHeader::BYTES);
const _: () = assert!(std::mem::offset_of!(RingHeader, state) == 0);
const _: () = assert!(std::mem::offset_of!(RingHeader, tid) == 4);
const _: () = assert!(std::mem::offset_of!(RingHeader, generation) == 8);
const _: () = assert!(std::mem::offset_of!(RingHeader, owner) == 16);
const _: () = assert!(std::mem::offset_of!(RingHeader, interrupted) == 24);
const _: () = assert!(std::mem::offset_of!(RingHeader, dormant_chunk) == 28);
const _: () = assert!(std::mem::offset_of!(RingHeader, settled) == 32);
const _: () = assert!(std::mem::offset_of!(RingHeader, ended) == 40);
const _: () = assert!(std::mem::offset_of!(RingHeader, reserved) == 44);
const _: () = assert!(std::mem::offset_of!(RingHeader, pad0) == 48);
const _: () = assert!(std::mem::offset_of!(RingHeader, head) == 64);
const _: () = assert!(std::mem::offset_of!(RingHeader, pad1) == 68);
const _: () = assert!(std::mem::offset_of!(RingHeader, tail) == 128);
const _: () = assert!(std::mem::offset_of!(RingHeader, producer_waits) == 132);
const _: () = assert!(std::mem::offset_of!(RingHeader, pad2) == 136);
const _: () = assert!(std::mem::offset_of!(RingHeader, end) == 192);
const _: () = assert!(std::mem::offset_of!(RingHeader, first_stamp) == 448);
const _: () = assert!(std::mem::offset_of!(RingHeader, last_stamp) == 960);

/// One message from a traced program.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// `magic`
    pub magic: u32,
    /// version.ring
    pub version: u16,
    /// message.\*
    pub kind: u16,
    /// `pid`
    pub pid: u32,
    /// index given by hello's reply; 0 in hello itself
    pub process: u32,
    /// run-time address minus link-time address of the module
    pub load_bias: u64,
    /// 0 when the module has none
    pub build_id_length: u32,
    /// `path_length`
    pub path_length: u32,
    /// `build_id`
    pub build_id: [u8; 32],
    /// path of the module's file, not terminated
    pub path: [u8; 4096],
}

impl Request {
    /// Size in memory and in a file.
    pub const BYTES: usize = 4160;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            magic: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            version: u16::from_le_bytes([bytes[4], bytes[5]]),
            kind: u16::from_le_bytes([bytes[6], bytes[7]]),
            pid: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            process: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
            load_bias: u64::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19], bytes[20], bytes[21], bytes[22], bytes[23]]),
            build_id_length: u32::from_le_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]),
            path_length: u32::from_le_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]),
            build_id: std::array::from_fn::<_, 32, _>(|i| bytes[32 + i]),
            path: std::array::from_fn::<_, 4096, _>(|i| bytes[64 + i]),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&self.magic.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.kind.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.pid.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.process.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.load_bias.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.build_id_length.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.path_length.to_le_bytes());
        bytes[32..64].copy_from_slice(&self.build_id);
        bytes[64..4160].copy_from_slice(&self.path);
        bytes
    }
}

impl Default for Request {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<Request>() == Request::BYTES);
const _: () = assert!(std::mem::offset_of!(Request, magic) == 0);
const _: () = assert!(std::mem::offset_of!(Request, version) == 4);
const _: () = assert!(std::mem::offset_of!(Request, kind) == 6);
const _: () = assert!(std::mem::offset_of!(Request, pid) == 8);
const _: () = assert!(std::mem::offset_of!(Request, process) == 12);
const _: () = assert!(std::mem::offset_of!(Request, load_bias) == 16);
const _: () = assert!(std::mem::offset_of!(Request, build_id_length) == 24);
const _: () = assert!(std::mem::offset_of!(Request, path_length) == 28);
const _: () = assert!(std::mem::offset_of!(Request, build_id) == 32);
const _: () = assert!(std::mem::offset_of!(Request, path) == 64);

/// The collector's answer.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// `magic`
    pub magic: u32,
    /// version.ring
    pub version: u16,
    /// message.status_\*
    pub status: u16,
    /// index of the process in the trace (hello)
    pub process: u32,
    /// zero
    pub reserved: u32,
}

impl Reply {
    /// Size in memory and in a file.
    pub const BYTES: usize = 16;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            magic: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            version: u16::from_le_bytes([bytes[4], bytes[5]]),
            status: u16::from_le_bytes([bytes[6], bytes[7]]),
            process: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            reserved: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&self.magic.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.status.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.process.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.reserved.to_le_bytes());
        bytes
    }
}

impl Default for Reply {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<Reply>() == Reply::BYTES);
const _: () = assert!(std::mem::offset_of!(Reply, magic) == 0);
const _: () = assert!(std::mem::offset_of!(Reply, version) == 4);
const _: () = assert!(std::mem::offset_of!(Reply, status) == 6);
const _: () = assert!(std::mem::offset_of!(Reply, process) == 8);
const _: () = assert!(std::mem::offset_of!(Reply, reserved) == 12);

/// An answer of a receiver; `bytes` of payload follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireReply {
    /// `magic`
    pub magic: u32,
    /// version.wire
    pub version: u16,
    /// wire_status.\*
    pub status: u16,
    /// length of the payload
    pub bytes: u32,
    /// zero
    pub reserved: u32,
}

impl WireReply {
    /// Size in memory and in a file.
    pub const BYTES: usize = 16;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            magic: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            version: u16::from_le_bytes([bytes[4], bytes[5]]),
            status: u16::from_le_bytes([bytes[6], bytes[7]]),
            bytes: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            reserved: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&self.magic.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.status.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.reserved.to_le_bytes());
        bytes
    }
}

impl Default for WireReply {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<WireReply>() == WireReply::BYTES);
const _: () = assert!(std::mem::offset_of!(WireReply, magic) == 0);
const _: () = assert!(std::mem::offset_of!(WireReply, version) == 4);
const _: () = assert!(std::mem::offset_of!(WireReply, status) == 6);
const _: () = assert!(std::mem::offset_of!(WireReply, bytes) == 8);
const _: () = assert!(std::mem::offset_of!(WireReply, reserved) == 12);

/// A sender's answer to the challenge.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireAnswer {
    /// `magic`
    pub magic: u32,
    /// version.wire
    pub version: u16,
    /// zero
    pub reserved: u16,
    /// random: the receiver's challenge
    pub nonce: [u8; 32],
    /// HMAC-SHA-256 of "sender" and both nonces, the receiver's first, keyed with the token
    pub proof: [u8; 32],
}

impl WireAnswer {
    /// Size in memory and in a file.
    pub const BYTES: usize = 72;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            magic: u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            version: u16::from_le_bytes([bytes[4], bytes[5]]),
            reserved: u16::from_le_bytes([bytes[6], bytes[7]]),
            nonce: std::array::from_fn::<_, 32, _>(|i| bytes[8 + i]),
            proof: std::array::from_fn::<_, 32, _>(|i| bytes[40 + i]),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..4].copy_from_slice(&self.magic.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.reserved.to_le_bytes());
        bytes[8..40].copy_from_slice(&self.nonce);
        bytes[40..72].copy_from_slice(&self.proof);
        bytes
    }
}

impl Default for WireAnswer {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<WireAnswer>() == WireAnswer::BYTES);
const _: () = assert!(std::mem::offset_of!(WireAnswer, magic) == 0);
const _: () = assert!(std::mem::offset_of!(WireAnswer, version) == 4);
const _: () = assert!(std::mem::offset_of!(WireAnswer, reserved) == 6);
const _: () = assert!(std::mem::offset_of!(WireAnswer, nonce) == 8);
const _: () = assert!(std::mem::offset_of!(WireAnswer, proof) == 40);

/// A piece of a trace; `bytes` of payload follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireFrame {
    /// wire.append …
    pub kind: u16,
    /// wire.last_piece or 0
    pub flags: u16,
    /// length of the payload
    pub bytes: u32,
    /// index of the process or module
    pub a: u32,
    /// index of the thread
    pub b: u32,
    /// bytes that came before of the file (append) or of the pieces (put)
    pub at: u64,
}

impl WireFrame {
    /// Size in memory and in a file.
    pub const BYTES: usize = 24;

    /// From its little-endian form.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self {
            kind: u16::from_le_bytes([bytes[0], bytes[1]]),
            flags: u16::from_le_bytes([bytes[2], bytes[3]]),
            bytes: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            a: u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]),
            b: u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]),
            at: u64::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19], bytes[20], bytes[21], bytes[22], bytes[23]]),
        }
    }

    /// To its little-endian form.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..2].copy_from_slice(&self.kind.to_le_bytes());
        bytes[2..4].copy_from_slice(&self.flags.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.a.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.b.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.at.to_le_bytes());
        bytes
    }
}

impl Default for WireFrame {
    fn default() -> Self {
        Self::from_bytes(&[0; Self::BYTES])
    }
}

const _: () = assert!(size_of::<WireFrame>() == WireFrame::BYTES);
const _: () = assert!(std::mem::offset_of!(WireFrame, kind) == 0);
const _: () = assert!(std::mem::offset_of!(WireFrame, flags) == 2);
const _: () = assert!(std::mem::offset_of!(WireFrame, bytes) == 4);
const _: () = assert!(std::mem::offset_of!(WireFrame, a) == 8);
const _: () = assert!(std::mem::offset_of!(WireFrame, b) == 12);
const _: () = assert!(std::mem::offset_of!(WireFrame, at) == 16);
