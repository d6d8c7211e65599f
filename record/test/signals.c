/* Handlers that record, while refills are under way: another thread sends signals as fast as it can.
 * Words of the interrupted code are committed whenever signals are let through, so nothing may be missing.
 * Some handlers leave by longjmp. Usage: signals CHUNKS (at
 * least); prints how many loads each side recorded. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"

static volatile uint64_t handled;
static atomic_int done;
static sigjmp_buf refilling;
static volatile sig_atomic_t may_jump;

static void handler(int signal) {
  (void)signal;
  emit_load((uint64_t)1 << 40 | handled);
  handled = handled + 1;
  if (may_jump && handled % 3 == 0)
    siglongjmp(refilling, 1);
}

static void *bombard(void *thread) {
  while (!atomic_load(&done))
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
  return 0;
}

int main(int argc, char **argv) {
  uint64_t chunks = argc > 1 ? strtoull(argv[1], 0, 10) : 10;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigaction(SIGUSR1, &action, 0);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, 0);
  emit_load(0); /* has a ring before it starts */
  pthread_t self = pthread_self(), sender;
  pthread_create(&sender, 0, bombard, &self);
  uint64_t recorded = 1;
  /* On a busy machine the sender may get little time: go on until it had its say. */
  for (uint64_t i = 0; i < chunks || (handled < 200 && i < 100 * chunks); i++) {
    while ((uintptr_t)__memlode_cursor & MEMLODE_RING_ROOM_BIT)
      emit_load(recorded++);
    if (!sigsetjmp(refilling, 1)) {
      may_jump = 1;
      pthread_sigmask(SIG_UNBLOCK, &set, 0);
      __memlode_refill(__memlode_cursor);
    }
    may_jump = 0;
    pthread_sigmask(SIG_BLOCK, &set, 0);
    if (!((uintptr_t)__memlode_cursor & MEMLODE_RING_ROOM_BIT))
      __memlode_refill(__memlode_cursor);
  }
  atomic_store(&done, 1);
  pthread_join(sender, 0);
  printf("%llu %llu\n", (unsigned long long)recorded, (unsigned long long)handled);
  return 0;
}
