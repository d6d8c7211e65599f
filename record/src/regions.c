/* Regions: the program says where it is, the collector has said what of that is wanted. */
#include "runtime.h"

/* Regions that are wanted and open, of all threads; changes under the lock. */
static uint32_t inside;

/* Returns whether a name is in the list that the collector left: names, each ended by a zero. */
static bool is_wanted(const char *name) {
  const char *list = (const char *)memlode_process.shared->regions;
  const char *end = list + sizeof memlode_process.shared->regions;
  while (list < end && *list) {
    const char *left = name;
    while (list < end && *list && *list == *left) {
      list++;
      left++;
    }
    if (list < end && !*list && !*left)
      return true;
    while (list < end && *list)
      list++;
    list++;
  }
  return false;
}

/* In a child of vfork too: it runs on its parent's memory, and is within what its parent is in. */
static bool is_connected(void) {
  return atomic_load_explicit(&memlode_process.mode, memory_order_acquire) == MEMLODE_CONNECTED;
}

MEMLODE_HIDDEN void memlode_switch_regions_locked(void) {
  if (!memlode_process.shared->regions[0])
    return;
  if (inside) {
    atomic_fetch_and_explicit(memlode_dormant(), ~(uint64_t)MEMLODE_OFF_REGION, memory_order_relaxed);
  } else {
    memlode_process.shared->was_dormant = 1;
    atomic_fetch_or_explicit(memlode_dormant(), MEMLODE_OFF_REGION, memory_order_release);
  }
}

MEMLODE_EXPORT void __memlode_region_start(const char *name) {
  if (!name || memlode_is_strange_child())
    return;
  if (!is_connected())
    memlode_count_region(name, true);
  if (!is_connected() || !is_wanted(name))
    return;
  uint64_t signals;
  memlode_lock(&signals);
  inside++;
  memlode_switch_regions_locked();
  memlode_unlock(&signals);
}

MEMLODE_EXPORT void __memlode_region_stop(const char *name) {
  if (!name || memlode_is_strange_child())
    return;
  if (!is_connected())
    memlode_count_region(name, false);
  if (!is_connected() || !is_wanted(name))
    return;
  uint64_t signals;
  memlode_lock(&signals);
  if (inside) {
    inside--;
    memlode_switch_regions_locked();
  }
  if (memlode_is_dormant())
    memlode_rest();
  memlode_unlock(&signals);
}
