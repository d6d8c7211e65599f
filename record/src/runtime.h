/* Declarations that the runtime's files share. Nothing here is visible outside the library.
 *
 *   entry_*.S   the refill stub: saves registers, calls memlode_refill
 *   ring.c      a thread's ring: claim, hand over, wait for room
 *   dormant.c   what is allocated while recording is off
 *   scratch.c   where threads write when nobody reads
 *   address.c   where the collector is
 *   connect.c   the collector's socket; the process's shared memory
 *   streams.c   which of its streams a thread writes to; handlers that are left for good
 *   suspended.c handlers in which user threads are switched
 *   signals.c   a program's signal handlers, and the stubs they are called through
 *   jumps.c     longjmp out of a signal handler
 *   modules.c   which instrumented images are loaded
 *   regions.c   which parts of the program are to be recorded
 *   tls.c       the compiler's calls for thread-local data
 *   images.c    the program's images, and what they define
 *   start.c     what static programs do before libc is ready
 *   seal.c      programs that forbid themselves system calls
 *   libc_blocks.c  blocks that functions of libc make
 *   extents.c   how far functions of libc look at strings
 *   fork.c      a child starts its own stream
 *   apart.c     what a child that nobody saw coming writes stays out of its parent's rings
 *   children.c  calls that make children without libc's fork
 *   bare_fork.c the one of them that only libc can make
 *   ends.c      how the process ends, or becomes another program
 *   leaving.c   the ways to do so that libc takes on its own
 *   abi.c       the symbols instrumented code refers to
 *
 * Rules of this library: no malloc, no stdio, no locks while a stream flows, no descriptor kept
 * open, nothing printed. No name of libc's that a program may have for something of its own is referred to
 * (`make check` has the list), and those that are defined here are weak. ring.c, dormant.c, scratch.c,
 * streams.c, address.c, apart.c and connect.c call no function of libc at all. */
#ifndef MEMLODE_RUNTIME_H
#define MEMLODE_RUNTIME_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memlode_format.h"
#include "memlode_record.h"
#include "stubs.h"

#define MEMLODE_HIDDEN __attribute__((visibility("hidden")))
#define MEMLODE_EXPORT __attribute__((visibility("default")))
/* Gives `memlode_name` the name that libc's function has, unless the program has something of that name
 * itself. What is here calls it by the other name therefore. */
/* NOLINTBEGIN(bugprone-macro-parentheses): it declares a name. */
#define MEMLODE_INTERPOSE(name)                                                                              \
  extern __typeof__(memlode_##name) name __attribute__((weak, alias("memlode_" #name), visibility("default")))
/* NOLINTEND(bugprone-macro-parentheses) */

enum {
  MEMLODE_REGION_BYTES = (2 * MEMLODE_RING_CHUNKS + 2) * MEMLODE_RING_CHUNK_BYTES,
#if defined(__x86_64__)
  MEMLODE_CONTROL_BYTES = 4096,
#else
  MEMLODE_CONTROL_BYTES = 0x10000, /* the largest page that a kernel may have */
#endif
  MEMLODE_LEVELS = 7, /* streams of a thread: its own, and those of handlers up to six deep */
  MEMLODE_PAIR_BYTES = 2 * MEMLODE_RING_CHUNK_BYTES, /* a chunk and its slack */
};

/* Not 0 while another task shares all of the calling thread's data (children.c). */
extern MEMLODE_HIDDEN __thread _Atomic uint64_t memlode_sharers __attribute__((tls_model("initial-exec")));

/* The calling thread's ring; NULL before the first refill and while the thread writes to scratch. */
extern MEMLODE_HIDDEN __thread struct memlode_ring_header *memlode_ring
    __attribute__((tls_model("initial-exec")));

/* Generation of the first ring of the calling thread; 0 before. */
extern MEMLODE_HIDDEN __thread uint64_t memlode_owner __attribute__((tls_model("initial-exec")));

/* Returns where the calling thread's allocations go while it is dormant: into a chunk of its ring, or to
 * scratch. NULL if it has begun no such chunk since it recorded. */
extern MEMLODE_HIDDEN __thread uint64_t *memlode_dormant_cursor __attribute__((tls_model("initial-exec")));

/* The place where words go: __memlode_cursor, memlode_ring and memlode_dormant_cursor together, or a stream
 * that has to wait. */
struct memlode_stream {
  uint64_t *cursor;
  struct memlode_ring_header *ring;
  uint64_t *dormant;
};

enum memlode_mode {
  MEMLODE_UNCONNECTED, /* no hello yet in this process */
  MEMLODE_CONNECTED,
  MEMLODE_DISCARDING, /* nobody listens, or no longer: code goes dormant, or to scratch, for ever */
};

/* The whole state of the process. Fields below `lock` change under it only. */
struct memlode_process {
  _Atomic uint32_t mode; /* enum memlode_mode; written last, with release */
  uint32_t rings;        /* slots that there are */
  struct memlode_process_header *shared;
  struct memlode_process_header *parent; /* of a forked child, until it has memory of its own */
  _Atomic uint32_t *canary;              /* 1; the kernel clears it in a child that fork created */
  _Atomic uint32_t lock;                 /* 0 free, 1 held, 2 held and awaited */
  _Atomic uint32_t sealed;               /* 1 once the runtime must make no system call any more */
  _Atomic uint32_t cancels;              /* 1 once a thread may be cancelled at any instruction */
  bool has_begun;                        /* the library's constructors have run: what is thread-local stays */
  uint32_t pid;
  uint32_t index;       /* of this process in the trace */
  bool crowded;         /* more threads than rings, when last looked */
  uint32_t collector;   /* process id of the collector, 0 if not known */
  uint32_t socket_size; /* of `socket`; 0 until the environment was read */
  struct {
    uint16_t family;
    char path[108];
  } socket;
};
extern MEMLODE_HIDDEN struct memlode_process memlode_process;

/* The process's rings by slot; NULL before the first claim. */
extern MEMLODE_HIDDEN struct memlode_ring_header *memlode_rings[MEMLODE_RING_RINGS];

/* Returns the word that is not 0 while nothing is to be recorded. */
static inline _Atomic uint64_t *memlode_dormant(void) {
  return (_Atomic uint64_t *)&((struct memlode_process_header *)__memlode_control)->dormant;
}
static inline bool memlode_is_dormant(void) {
  return atomic_load_explicit(memlode_dormant(), memory_order_relaxed);
}

/* Returns whether the runtime must make no system call any more. */
static inline bool memlode_is_sealed(void) {
  return atomic_load_explicit(&memlode_process.sealed, memory_order_relaxed);
}

/* A child of a fork that nobody saw, as inline assembly makes it: it is noticed at its first refill or
 * signal, or when it ends. What it wrote until then is in memory of its own (apart.c). */
static inline bool memlode_is_strange_child(void) {
  return atomic_load_explicit(&memlode_process.mode, memory_order_relaxed) == MEMLODE_CONNECTED &&
         atomic_load_explicit(memlode_process.canary, memory_order_relaxed) == 0;
}

/* ring.c */
MEMLODE_HIDDEN uint64_t *memlode_chunk_start(struct memlode_ring_header *ring, uint32_t chunk);
/* Waits until the collector has given back a chunk. False if it does not: there is no collector any more, or
 * it does not see what this ring waits for. */
MEMLODE_HIDDEN bool memlode_wait_for_room(struct memlode_ring_header *ring, uint32_t head);
/* Moves head past chunk `head`, whose end[] is set. */
MEMLODE_HIDDEN void memlode_hand_over(struct memlode_ring_header *ring, uint32_t head);
/* A free ring for the calling thread, NULL if all are taken. If asked to be patient, it gives the collector
 * time to notice which threads have ended. Under the lock. */
MEMLODE_HIDDEN struct memlode_ring_header *memlode_claim_locked(bool patiently);
MEMLODE_HIDDEN uint64_t *memlode_refill(uint64_t *cursor);
MEMLODE_HIDDEN uint64_t *memlode_more(uint64_t *cursor);
MEMLODE_HIDDEN uint64_t *memlode_switch(uint64_t *cursor);
/* Recording was switched off by the calling thread. */
MEMLODE_HIDDEN void memlode_rest(void);
/* Ends a stream's chunk behind the last word that abandoned code has written to it. If that code met a fault,
 * what it had begun last was not done, though its words may be whole. */
MEMLODE_HIDDEN void memlode_abandon(struct memlode_stream *stream, bool faulted);

/* dormant.c: hands over what a stream has written while its thread was dormant; `cut_short` if the code that
 * wrote it is abandoned. */
MEMLODE_HIDDEN void memlode_end_dormant(struct memlode_stream *stream, bool cut_short);

/* streams.c */
struct memlode_activation {
  uint32_t level;           /* how many handlers deep; memlode_begin_handler's to set */
  uintptr_t frame;          /* the handler's callees are at or below this address */
  uintptr_t stack_low;      /* lowest address of the alternate stack it is on, 0 if it is on none */
  uintptr_t interrupted_at; /* stack pointer of the code it interrupted */
  bool faulted;             /* that code touched memory that it may not touch */
};
_Static_assert(sizeof(struct memlode_activation) == MEMLODE_ACTIVATION_BYTES, "room in entry_*.S");
MEMLODE_HIDDEN void memlode_begin_handler(struct memlode_activation *activation);
MEMLODE_HIDDEN void memlode_end_handler(const struct memlode_activation *activation);
/* The innermost handler around a stack pointer is being unwound: it will not return. */
MEMLODE_HIDDEN void memlode_leave_handler(uintptr_t stack_pointer);
/* Returns whether code that has, or will have, this stack pointer has left handlers for good. Then the
 * cursor and the ring are those of its own level. `cursor` is the running code's. */
MEMLODE_HIDDEN bool memlode_notice_jump(uintptr_t stack_pointer, uint64_t *cursor);
/* The running handler is one of too many: it gets no ring. */
MEMLODE_HIDDEN bool memlode_is_too_deep(void);
/* In a child: all streams were the parent's. Returns whether there is interrupted code that will go on
 * writing to some. */
MEMLODE_HIDDEN bool memlode_forget_streams(void);

/* suspended.c */
struct memlode_handler {
  struct memlode_stream interrupted;
  uintptr_t frame;          /* the handler runs at or below this address */
  uintptr_t stack_low;      /* and at or above this one: 0, or the end of the alternate stack it is on */
  uintptr_t interrupted_at; /* see struct memlode_activation, as for the next one */
  bool faulted;
};
/* Returns whether the code that a handler interrupted cannot go on, for the stack pointer is at another
 * place, where the handler does not run. */
MEMLODE_HIDDEN bool memlode_is_over(const struct memlode_handler *handler, uintptr_t at);
/* A number for handlers that are suspended at once. */
MEMLODE_HIDDEN uint32_t memlode_new_group(void);
MEMLODE_HIDDEN void memlode_suspend(const struct memlode_handler *handler, uint32_t level, uint32_t group);
/* Returns whether a handler is suspended, and with which others. */
MEMLODE_HIDDEN bool memlode_find_suspended(uintptr_t frame, uint32_t *group);
/* Takes one of a group, the highest level first; returns its level, 0 if there is none any more. */
MEMLODE_HIDDEN uint32_t memlode_take_suspended(uint32_t group, struct memlode_handler *handler);
/* Takes one of which the kernel has overwritten the frame. False if there is none. */
MEMLODE_HIDDEN bool memlode_take_overwritten(uintptr_t low, uintptr_t high, struct memlode_handler *handler);
/* Forgets all; returns whether there were any. */
MEMLODE_HIDDEN bool memlode_forget_suspended(void);

/* scratch.c */
MEMLODE_HIDDEN uint64_t *memlode_scratch(uint64_t *cursor);
/* The same place, for another cursor than the thread's. */
MEMLODE_HIDDEN uint64_t *memlode_scratch_start(uint64_t *cursor);
/* A place for the words of a path, where the test for room fails. */
MEMLODE_HIDDEN uint64_t *memlode_scratch_slack(uint64_t *cursor);
/* A place with room for one segment: the code asks again at the next. */
MEMLODE_HIDDEN uint64_t *memlode_scratch_last(uint64_t *cursor);
MEMLODE_HIDDEN bool memlode_is_scratch(const uint64_t *cursor);

/* address.c: finds the collector's address. False while there is no environment to look into. */
MEMLODE_HIDDEN bool memlode_read_environment(void);
/* Returns what the environment has behind `NAME=`. NULL if it has none, or gives no orders to this
 * program. */
MEMLODE_HIDDEN const char *memlode_variable(const char *beginning);
/* Returns whether a socket's other end is root's or the user's that the program runs as, and of that number
 * if one is given: nobody else may see what the program does. */
MEMLODE_HIDDEN bool memlode_may_trust(long fd, uint32_t number);
/* Connects a socket to the collector of that number. Zero or -errno. */
MEMLODE_HIDDEN long memlode_connect_to_number(long fd, uint32_t number);

/* entry_*.S: calls a function in another task that shares all with this one but its table of descriptors, and
 * waits for it. Zero or less if there is none. */
MEMLODE_HIDDEN long memlode_run_apart(void (*function)(void *), void *argument, char *end_of_stack);

/* connect.c. The lock is held with all signals blocked: a handler may need a refill, too. */
MEMLODE_HIDDEN void memlode_lock(uint64_t *saved_signals);
MEMLODE_HIDDEN void memlode_unlock(const uint64_t *saved_signals);
MEMLODE_HIDDEN void memlode_block_signals(uint64_t *saved);
MEMLODE_HIDDEN void memlode_restore_signals(const uint64_t *saved);
MEMLODE_HIDDEN enum memlode_mode memlode_connect_locked(void);
/* The ring of a slot, mapped if it was not yet; NULL if it cannot be. */
MEMLODE_HIDDEN struct memlode_ring_header *memlode_map_ring_locked(uint64_t slot);
/* There is no collector (any more). */
MEMLODE_HIDDEN void memlode_discard(void);
/* There is one all the same: recording goes on. */
MEMLODE_HIDDEN void memlode_discard_no_more(void);
/* A child that its parent forked is not recorded. */
MEMLODE_HIDDEN void memlode_tell_parent(void);
/* There is one that does nothing any more: the program goes on without it, and says so where it will look,
 * should it ever go on. */
MEMLODE_HIDDEN void memlode_give_up(void);
/* Makes the control page the process's own again, all zero. */
MEMLODE_HIDDEN void memlode_forget_control(void);
MEMLODE_HIDDEN bool memlode_collector_lives(void);
MEMLODE_HIDDEN void memlode_send_locked(struct memlode_request *request);
MEMLODE_HIDDEN void memlode_doorbell(bool even_if_awake);
MEMLODE_HIDDEN bool memlode_is_vfork_child(void);
/* A task that is no thread of the process runs on its memory, unrecorded. */
MEMLODE_HIDDEN void memlode_tell_task(void);

/* regions.c: switches recording off, if no region is open and some are asked for, or on. */
MEMLODE_HIDDEN void memlode_switch_regions_locked(void);

/* counted.c: turns counters on or off, if those of this region are asked for. */
MEMLODE_HIDDEN void memlode_count_region(const char *name, bool starts);

/* modules.c: tells a fresh connection about the images it has not heard of. */
MEMLODE_HIDDEN void memlode_announce_modules_locked(void);

/* streams.c: says of the calling thread's streams that all their segments are whole; its code has just stored
 * its cursor. */
MEMLODE_HIDDEN void memlode_settle(void);

/* ends.c: the calling thread's streams are whole now, and those of threads that have ended. Whether it is
 * this process that calls, and not a child that runs on its memory. */
MEMLODE_HIDDEN bool memlode_settle_process(void);
/* The process is about to end, or to become another program, by its own will; or that failed. */
MEMLODE_HIDDEN void memlode_leave(void);
MEMLODE_HIDDEN void memlode_stay(void);
/* The process has begun. */
MEMLODE_HIDDEN void memlode_expect_end(void);
/* A thread may be cancelled at any instruction. */
MEMLODE_HIDDEN void memlode_expect_cancelling(void);
/* leaving.c, in a static program start.c: returns whether the program may let threads be cancelled so, and
 * nobody sees it. */
MEMLODE_HIDDEN bool memlode_overlooks_cancelling(void);

/* An image of the program's. */
struct memlode_image {
  uintptr_t bias;
  const char *name;
  const void *segments; /* ElfW(Phdr) */
  int count;
};

/* images.c, in a static program start.c: the image that has an address. */
MEMLODE_HIDDEN bool memlode_find_image(uintptr_t address, struct memlode_image *image);
/* images.c: the next definition of a function behind ours; NULL if there is none. Not in a static program. */
MEMLODE_HIDDEN void *memlode_next(const char *name);
/* Both: libc's `signal`, which knows what `siginterrupt` was asked for. */
typedef void memlode_plain_handler(int);
MEMLODE_HIDDEN memlode_plain_handler *memlode_libc_signal(int signal, memlode_plain_handler *handler);

/* Copies bytes: a program may have a memcpy of its own. */
static inline void memlode_copy(void *to, const void *from, size_t bytes) {
  for (size_t i = 0; i < bytes; i++)
    ((char *)to)[i] = ((const char *)from)[i];
}

/* fork.c: drops what belongs to the parent, in a child that was seen coming, and in one that was not. */
MEMLODE_HIDDEN void memlode_forget_parent(void);
MEMLODE_HIDDEN void memlode_notice_child(void);
/* Notices it where the running code has just stored its cursor. What it wrote until then is recorded. */
MEMLODE_HIDDEN void memlode_adopt(void);

/* apart.c: chooses where the process's rings are to be, and returns where one of them is. */
MEMLODE_HIDDEN void memlode_choose_area(void);
MEMLODE_HIDDEN uintptr_t memlode_place_of(uint64_t slot);
/* Keeps a ring out of children, where that is possible, and makes room there for what they write to it. */
MEMLODE_HIDDEN void memlode_shield(struct memlode_ring_header *ring, uint64_t slot);
/* The rings, in a child that was not seen: its own memory now, which code writes to until its next refill. */
MEMLODE_HIDDEN void memlode_leave_behind(void);
/* Returns the first of the words up to this cursor that a child wrote before it was noticed; NULL if none. */
MEMLODE_HIDDEN const uint64_t *memlode_left_behind(const uint64_t *cursor);
/* The word that tells a child from its parent. */
MEMLODE_HIDDEN void memlode_make_canary(void);

/* children.c: returns whether another task shares the calling thread's data, and with them the cursor. */
MEMLODE_HIDDEN bool memlode_is_shared(void);

#endif
