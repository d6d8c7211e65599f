/* The symbols instrumented code refers to, besides the functions that have a file of their own. */
#include "runtime.h"

MEMLODE_EXPORT __thread uint64_t *__memlode_cursor;
MEMLODE_EXPORT uint32_t __memlode_others;
MEMLODE_HIDDEN __thread struct memlode_ring_header *memlode_ring;
MEMLODE_HIDDEN __thread uint64_t memlode_owner;
MEMLODE_HIDDEN __thread _Atomic uint64_t memlode_sharers;
MEMLODE_HIDDEN __thread uint64_t *memlode_dormant_cursor;

MEMLODE_HIDDEN struct memlode_process memlode_process;
MEMLODE_HIDDEN struct memlode_ring_header *memlode_rings[MEMLODE_RING_RINGS];

/* Whole pages: shared memory takes their place. */
MEMLODE_EXPORT char __memlode_control[MEMLODE_CONTROL_BYTES] __attribute__((aligned(MEMLODE_CONTROL_BYTES)));

MEMLODE_EXPORT const char __memlode_abi_2_link_with_memlode_cc = MEMLODE_VERSION_RING;

MEMLODE_EXPORT void __memlode_call_access(uint64_t anchor, uint64_t address, uint64_t extent) {
  (void)anchor;
  (void)address;
  (void)extent;
}
