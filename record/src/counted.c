/* Counting a region: `memlode stat --region NAME` opens counters that are off, and the program that inherits
 * their descriptors turns them on and off itself. So nothing of what lies between the call and the counter is
 * counted but one system call, and nobody waits for another process.
 *
 * The environment says which descriptors, and which region:
 *
 *     MEMLODE_COUNT_REGION=200-205:solve
 *
 * A counter counts all threads and children of the program, whichever thread turns it on. Only the first
 * process that enters a region does so: its children would turn off what it has turned on. */
#include "runtime.h"
#include "syscalls.h"

#include <linux/perf_event.h>

enum { UNREAD, NONE, SOME };

static _Atomic int state;

/* Under the lock. */
static struct {
  long process;
  uint32_t first, last;
  /* Threads that are in the region. */
  uint32_t inside;
  char name[256];
} counted;

static const char *read_number(const char *text, uint32_t *number) {
  *number = 0;
  while (*text >= '0' && *text <= '9' && *number < 100000)
    *number = 10 * *number + (uint32_t)(*text++ - '0');
  return text;
}

static void read_orders(void) {
  atomic_store_explicit(&state, NONE, memory_order_relaxed);
  counted.process = memlode_call(SYS_getpid);
  const char *text = memlode_variable("MEMLODE_COUNT_REGION=");
  if (!text)
    return;
  text = read_number(text, &counted.first);
  if (*text++ != '-')
    return;
  text = read_number(text, &counted.last);
  if (*text++ != ':')
    return;
  uint32_t length = 0;
  for (; text[length] && length < sizeof counted.name - 1; length++)
    counted.name[length] = text[length];
  counted.name[length] = 0;
  atomic_store_explicit(&state, SOME, memory_order_relaxed);
}

static bool is_counted(const char *name) {
  if (atomic_load_explicit(&state, memory_order_relaxed) == UNREAD)
    read_orders();
  if (atomic_load_explicit(&state, memory_order_relaxed) == NONE ||
      counted.process != memlode_call(SYS_getpid))
    return false;
  const char *wanted = counted.name;
  while (*wanted && *wanted == *name) {
    wanted++;
    name++;
  }
  return *wanted == *name;
}

static void turn(unsigned long how) {
  for (uint32_t fd = counted.first; fd <= counted.last; fd++)
    memlode_call(SYS_ioctl, fd, how, PERF_IOC_FLAG_GROUP);
}

MEMLODE_HIDDEN void memlode_count_region(const char *name, bool starts) {
  if (atomic_load_explicit(&state, memory_order_relaxed) == NONE)
    return;
  uint64_t signals;
  memlode_lock(&signals);
  if (is_counted(name)) {
    uint32_t before = counted.inside;
    if (starts)
      counted.inside++;
    else if (before)
      counted.inside--;
    if (!before && counted.inside)
      turn(PERF_EVENT_IOC_ENABLE);
    else if (before && !counted.inside)
      turn(PERF_EVENT_IOC_DISABLE);
  }
  memlode_unlock(&signals);
}
