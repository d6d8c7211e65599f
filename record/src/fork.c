/* A process's beginning: a forked child starts streams of its own. */
#include "runtime.h"
#include "syscalls.h"

#include <sys/mman.h>

/* Streams, ring and shared memory are the parent's: leave them as they are. The collector hears
 * of the child with its first event. */
MEMLODE_HIDDEN void memlode_forget_parent(void) {
  uint64_t signals = 0;
  memlode_block_signals(&signals);
  memlode_owner = 0;
  struct memlode_slots abandoned;
  for (size_t i = 0; i < sizeof abandoned.words / sizeof abandoned.words[0]; i++)
    abandoned.words[i] = 0;
  memlode_forget_streams(&abandoned);
  if (memlode_is_sealed())
    return; /* its parent has told why neither is recorded */
  if (atomic_load_explicit(&memlode_process.mode, memory_order_relaxed) == MEMLODE_CONNECTED) {
    uintptr_t base = (uintptr_t)memlode_process.shared;
    uintptr_t end =
        (uintptr_t)memlode_process.first_ring + (size_t)memlode_process.rings * MEMLODE_REGION_BYTES;
    atomic_store_explicit(&memlode_process.mode, MEMLODE_UNCONNECTED, memory_order_relaxed);
    /* The first page stays: to tell the parent's collector of a child that does not find it. */
    memlode_process.parent = memlode_process.shared;
    memlode_call(SYS_munmap, base + MEMLODE_CONTROL_BYTES, end - base - MEMLODE_CONTROL_BYTES);
    memlode_forget_control();
    /* In a child forked by a signal handler, the interrupted code will write on where it was: to
     * memory that nobody reads, until its next refill. */
    for (uint32_t i = 0; i < memlode_process.rings; i++)
      if (abandoned.words[i / 64] >> i % 64 & 1)
        memlode_call(SYS_mmap, memlode_process.first_ring + (size_t)i * MEMLODE_REGION_BYTES,
                     (size_t)MEMLODE_REGION_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  } else if (atomic_load_explicit(&memlode_process.mode, memory_order_relaxed) == MEMLODE_DISCARDING) {
    memlode_tell_parent();
  }
  if (memlode_process.canary)
    atomic_store_explicit(memlode_process.canary, 1, memory_order_relaxed);
  memlode_process.shared = NULL;
  memlode_process.pid = (uint32_t)memlode_call(SYS_getpid);
  atomic_store_explicit(&memlode_process.lock, 0, memory_order_relaxed); /* its holder is not here */
  memlode_restore_signals(&signals);
}

/* pthread_atfork by libc's own name. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *image);
extern void *__dso_handle MEMLODE_HIDDEN;

/* Parent and child may share memory, and talk. */
static void expect_child(void) {
  atomic_store_explicit((_Atomic uint32_t *)&__memlode_others, 1, memory_order_relaxed);
}

__attribute__((constructor(101))) static void begin_process(void) {
  memlode_process.pid = (uint32_t)memlode_call(SYS_getpid);
  memlode_process.has_begun = true;
  memlode_expect_end();
  __register_atfork(expect_child, NULL, memlode_forget_parent, &__dso_handle);
}
