/* memlode from inside a program: which parts of it are recorded.
 *
 *     #include <memlode.h>
 *
 *     memlode_start("solve");
 *     solve();
 *     memlode_stop("solve");
 *
 * `memlode run --region solve` then records what the program does between the two, from the next function
 * that is entered or loop that goes round; without --region they do nothing. A region is on as long as any
 * thread is in it. Regions may nest. Other threads notice a change at the next loop or when they have filled
 * a chunk.
 *
 * Calls are no-ops in a program that was not built by `memlode cc` or is not recorded. There is nothing to
 * link with: copy this file into your project if you like. */
#ifndef MEMLODE_H
#define MEMLODE_H

#ifdef __cplusplus
extern "C" {
#endif

void __memlode_region_start(const char *name) __attribute__((weak));
void __memlode_region_stop(const char *name) __attribute__((weak));

static inline void memlode_start(const char *name) {
  if (__memlode_region_start)
    __memlode_region_start(name);
}

static inline void memlode_stop(const char *name) {
  if (__memlode_region_stop)
    __memlode_region_stop(name);
}

#ifdef __cplusplus
}
#endif

#endif
