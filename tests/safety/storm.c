/* Signals at any instruction: a timer interrupts a loop thousands of times; its handler records on the
 * interrupted stack, on an alternate one, or leaves by siglongjmp. Usage: storm same|alternate|jump|nested */
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "objects.h"

enum { CELLS = 4096, SEEN = 512 };

uint32_t cells[CELLS];
uint32_t seen[SEEN];
static volatile sig_atomic_t handled;
static volatile sig_atomic_t may_jump;
static sigjmp_buf outside;
static int jumps, nested;

static void deeper(int signal) {
  (void)signal;
  for (int i = 0; i < 16; i++)
    seen[(handled + i) % SEEN] += 3;
}

static void handler(int signal) {
  (void)signal;
  for (int i = 0; i < 64; i++)
    seen[(handled * 7 + i) % SEEN] += 1;
  if (nested)
    raise(SIGUSR1);
  handled++;
  if (jumps && may_jump) {
    may_jump = 0; /* a signal that waits comes before the jump is done */
    siglongjmp(outside, 1);
  }
}

__attribute__((noinline)) static uint32_t round_of_work(uint32_t seed) {
  for (int i = 0; i < 20000; i++) {
    seed = seed * 1664525 + 1013904223;
    cells[seed >> 20] += seed;
    if (cells[seed >> 21] & 1)
      cells[(seed >> 10) % CELLS] ^= 1;
  }
  return seed;
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  jumps = !strcmp(how, "jump");
  nested = !strcmp(how, "nested");
  if (!strcmp(how, "alternate") || jumps) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, 0);
    action.sa_flags |= SA_ONSTACK;
  }
  OBJECT(cells);
  OBJECT(seen);
  sigaction(SIGALRM, &action, 0);
  signal(SIGUSR1, deeper);
  struct itimerval often = {.it_interval = {.tv_usec = 50}, .it_value = {.tv_usec = 50}};
  setitimer(ITIMER_REAL, &often, 0);
  /* Rounds count by their result, which does not depend on how often one had to be begun again. */
  uint32_t sum = 0;
  volatile int round = 0, tries = 0;
  while (round < 30 || handled < 300) {
    if (!sigsetjmp(outside, 1)) {
      may_jump = tries++ < 3; /* or a slow machine would never end a round */
      uint32_t end = round_of_work((uint32_t)round);
      may_jump = 0;
      if (round < 30)
        sum += end;
      round++;
      tries = 0;
    }
    may_jump = 0;
  }
  struct itimerval never = {.it_value = {0}};
  setitimer(ITIMER_REAL, &never, 0);
  printf("%u %s\n", sum, handled >= 300 ? "handled" : "quiet");
  return 0;
}
