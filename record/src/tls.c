/* Calls that the compiler makes to find what is thread-local in a library.
 *
 * They stand where the code generator puts them, in the middle of a segment perhaps, and the first one of a
 * thread gets memory by the program's own malloc, which may record. So it runs as a signal handler does: on a
 * stream of its own, while that of its caller waits.
 *
 * Not in the static library: a static program has no second definition to go on to. */
#include "runtime.h"

typedef void *find_function(void *what);

static void *find(find_function *function, void *what) {
  if (atomic_load_explicit(&memlode_process.mode, memory_order_relaxed) != MEMLODE_CONNECTED)
    return function(what);
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  struct memlode_activation activation = {.frame = frame, .interrupted_at = frame};
  memlode_begin_handler(&activation);
  void *found = function(what);
  memlode_end_handler(&activation);
  return found;
}

static find_function *real;

/* Early: later, it may be the middle of anything. */
__attribute__((constructor(101))) static void find_real(void) {
  real = (find_function *)(uintptr_t)memlode_next("__tls_get_addr");
}

MEMLODE_EXPORT __attribute__((weak)) void *__tls_get_addr(void *index) {
  if (!real)
    find_real(); /* before our constructor */
  return find(real, index);
}
