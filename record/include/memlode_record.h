/* The interface of instrumented code and the runtime: what they ask of each other.
 *
 * A thread's cursor points at the next word of its stream. Emitted code tests for room with one
 * bit of the cursor, asks for a refill when there is none, and stores words behind it:
 *
 *     if (!((uintptr_t)cursor & MEMLODE_RING_ROOM_BIT))
 *       cursor = __memlode_refill(cursor);
 *     cursor[0] = header; cursor[1] = address; ...; cursor += 1 + words;
 */
#ifndef MEMLODE_RECORD_H
#define MEMLODE_RECORD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread's cursor. NULL until its first refill. Instrumented code holds it in a
 * register and stores it here before every call, so whatever a call does finds it up to date. */
extern __thread uint64_t *__memlode_cursor __attribute__((tls_model("initial-exec")));

/* Not 0 once another thread of the process has recorded, or the process has forked: from then on there
 * is somebody to learn from, and instrumented code stamps the places where it does. */
extern uint32_t __memlode_others;

/* Returns a cursor with room and stores it in __memlode_cursor. Written in assembly: preserves
 * every register but the result's and, on x86-64, r11 and the flags (LLVM's preserve_allcc). */
uint64_t *__memlode_refill(uint64_t *cursor);

/* The same, but words that are lost because recording is off stay so when it is on again: what follows
 * may be derived from them. */
uint64_t *__memlode_more(uint64_t *cursor);

/* Like __memlode_refill, for functions that have a dormant side beside the recording one. While recording is
 * off it returns a cursor without room: for what is stored on the way to the next point where control can
 * change sides. */
uint64_t *__memlode_switch(uint64_t *cursor);

/* Called by a function's dormant side: what it says of an object that came or went, unless nobody will ever
 * record: the anchor of a segment of so many words behind the first, which is a time stamp. */
void __memlode_dormant_1(uint64_t anchor, uint64_t word);
void __memlode_dormant_2(uint64_t anchor, uint64_t word, uint64_t second);
void __memlode_dormant_3(uint64_t anchor, uint64_t word, uint64_t second, uint64_t third);

/* Bytes of a string, with its end, and at most so many: what a function of libc looks at. 0 if `own`, the
 * address of the program's own definition of that function, is not NULL. */
uint64_t __memlode_extent_string(const void *own, const char *s, uint64_t most);

/* The same where at most so many are copied, and an end behind them. */
uint64_t __memlode_extent_append(const void *own, const char *s, uint64_t most);

/* Bytes of each of two strings up to their first difference, or their end; `fold`: but for the case of
 * letters. */
uint64_t __memlode_extent_compare(const void *own, const char *a, const char *b, uint64_t most,
                                  uint32_t fold);

/* The same of characters of four bytes, of which `most` says how many. The results are bytes. */
uint64_t __memlode_extent_string_wide(const void *own, const uint32_t *s, uint64_t most);
uint64_t __memlode_extent_append_wide(const void *own, const uint32_t *s, uint64_t most);
uint64_t __memlode_extent_compare_wide(const void *own, const uint32_t *a, const uint32_t *b, uint64_t most);

/* Begins with struct memlode_process_header, once the process has said hello, of which instrumented
 * code reads `dormant`. Until then it is all zero: everything is recorded. */
extern char __memlode_control[];

/* Called once by each instrumented image when it comes and goes; `handle` is any address in it. */
void __memlode_module_load(const void *handle);
void __memlode_module_unload(const void *handle);

/* The other way to instrument: a call for each access, with the length of a range or the mask of
 * lanes. Empty; it exists to be measured against. */
void __memlode_call_access(uint64_t anchor, uint64_t address, uint64_t extent);

/* Each instrumented image refers to this symbol, so that linking with a runtime that speaks an
 * older protocol fails at link time. */
extern const char __memlode_abi_2_link_with_memlode_cc;

#ifdef __cplusplus
}
#endif

#endif
