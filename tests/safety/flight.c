/* A thread is inside a counted loop that would take seconds when main returns. That it is, main learns from
 * the kernel: a loop that waits for what the other one stores would make each of its stores a release. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile unsigned rounds = 2000000000u;
static long counted;

static void *body(void *argument) {
  for (unsigned i = 0, n = rounds; i < n; i++)
    (*(volatile long *)&counted)++;
  return argument;
}

int main(void) {
  int ends[2];
  long seen = 0;
  pthread_t thread;
  if (pipe(ends) || pthread_create(&thread, 0, body, 0))
    return 1;
  while (!seen)
    if (write(ends[1], &counted, sizeof counted) != sizeof counted ||
        read(ends[0], &seen, sizeof seen) != sizeof seen)
      return 2;
  puts("left");
  return 0;
}
