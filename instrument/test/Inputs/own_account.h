// What a program says itself of its accesses: each macro notes what the next statement does, by no help of
// the pass.
#ifndef OWN_ACCOUNT_H
#define OWN_ACCOUNT_H
#include <stdio.h>

// Neither instrumented nor optimised away.
#define UNSEEN __attribute__((noinline, disable_sanitizer_instrumentation))

struct note {
  const char *kind;
  unsigned long bytes;
  const volatile void *at;
};
static struct note notes[1 << 12];
static unsigned note_count;

UNSEEN static void own(const char *kind, unsigned long bytes, const volatile void *at) {
  notes[note_count++] = (struct note){kind, bytes, at};
}

UNSEEN static void say_notes(void) {
  for (unsigned i = 0; i < note_count; i++)
    printf("own %s %lu %p\n", notes[i].kind, notes[i].bytes, (void *)notes[i].at);
}

#endif
