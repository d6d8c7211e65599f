/* Two tasks on one memory and one thread's data: clone with CLONE_VM, and nothing else. Usage: tasks ROUNDS.
 * Neither calls libc while the other runs. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "objects.h"

enum { CELLS = 512 };
long ours[CELLS], theirs[CELLS], later[CELLS];
static volatile long rounds;
static char stack[1 << 16] __attribute__((aligned(16)));

/* One load and one store each round. */
__attribute__((noinline)) static long add(long *cells, long count) {
  long at = 0;
  for (long i = 0; i < count; i++)
    at = (at + ++cells[at] * 7) & (CELLS - 1);
  return at;
}

static int other(void *argument) {
  (void)argument;
  add(theirs, rounds);
  return 0;
}

int main(int argc, char **argv) {
  rounds = argc > 1 ? strtol(argv[1], 0, 10) : 1000;
  OBJECT(ours);
  OBJECT(theirs);
  OBJECT(later);
  pid_t child = clone(other, stack + sizeof stack, CLONE_VM | SIGCHLD, 0);
  add(ours, rounds);
  while (waitpid(child, 0, 0) < 0) {
  }
  printf("%ld\n", add(later, 1000));
  return 0;
}
