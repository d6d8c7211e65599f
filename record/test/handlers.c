/* A handler that runs between the words of a segment, and writes over them: it finds the cursor of the last
 * call. Records loads of 1..1000, then what is damaged, then loads of 2001..3000. */
#include <signal.h>

#include "emit.h"

static void handler(int signal) {
  (void)signal;
  emit_loads(5000, 5);
}

int main(void) {
  signal(SIGUSR1, handler);
  emit_loads(1, 1000);
  uint64_t *cursor = __memlode_cursor;
  cursor[0] = (uint64_t)(uintptr_t)&memlode_test_anchors[BLOCK];
  for (int i = 1; i <= 64; i++) {
    cursor[i] = 100000 + (uint64_t)i;
    if (i == 32)
      raise(SIGUSR1);
  }
  __memlode_cursor = cursor + 65;
  emit_loads(2001, 1000);
  return 0;
}
