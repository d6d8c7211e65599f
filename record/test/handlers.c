/* Signal handlers that record, run between the words of a segment. Usage: handlers WHAT.
 *
 * The interrupted code is what the compiler plug-in makes: it keeps its cursor to itself. It records
 * loads of 1, 2, ..., 1000 and stores the cursor; then, with the cursor in a register, loads of 1001, 1002,
 * 1003 and a block of 64, from 100001 on, with a signal after the 32nd; then loads of 2001, ..., 3000.
 * Handlers record 5000, ..., 5004, plus 10000 times their depth less one. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "emit.h"

static const char *what;
static int depth, deepest;
static sigjmp_buf outside;
static ucontext_t outside_context;
static volatile int left;
static pid_t child;

static uint64_t *cursor_with_room(void) {
  uint64_t *cursor = __memlode_cursor;
  return (uintptr_t)cursor & MEMLODE_RING_ROOM_BIT ? cursor : __memlode_refill(cursor);
}

static int is(const char *name) { return !strcmp(what, name); }

/* A block of 64 loads, with a signal in its middle. */
static uint64_t *interrupted_block(uint64_t *cursor, uint64_t first) {
  cursor[0] = (uint64_t)(uintptr_t)&memlode_test_anchors[BLOCK];
  for (int i = 1; i <= 64; i++) {
    cursor[i] = first + (uint64_t)i;
    if (i == 32)
      raise(SIGUSR1);
  }
  return cursor + 65;
}

static void handler(int signal) {
  int level = depth++;
  emit_loads(5000 + 10000 * (uint64_t)level, 5);
  if (depth < deepest)
    __memlode_cursor = interrupted_block(cursor_with_room(), 100000 * (uint64_t)(level + 2));
  depth--;
  if (is("jump") || is("jump-alternate"))
    siglongjmp(outside, 1);
  if (is("switch") && !left) {
    left = 1;
    setcontext(&outside_context);
  }
  if (is("exit"))
    exit(0);
  if (is("_exit"))
    _exit(0);
  if (is("pthread_exit"))
    pthread_exit(0);
  if (is("fork"))
    child = fork();
  if (is("inner-jump")) {
    sigjmp_buf inside;
    if (!sigsetjmp(inside, 1)) {
      emit_loads(6000, 1);
      siglongjmp(inside, 1);
    }
    emit_loads(6001, 1);
  }
  (void)signal;
}

static void interrupted(void) {
  uint64_t *cursor = cursor_with_room();
  for (uint64_t i = 1001; i <= 1003; i++) {
    *cursor++ = (uint64_t)(uintptr_t)&memlode_test_anchors[LOAD];
    *cursor++ = i;
  }
  __memlode_cursor = interrupted_block(cursor, 100000);
}

static void *work(void *unused) {
  (void)unused;
  stack_t alternate = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
  struct sigaction action = {.sa_flags = SA_NODEFER};
  action.sa_handler = handler;
  if (is("alternate") || is("jump-alternate")) {
    sigaltstack(&alternate, 0);
    action.sa_flags |= SA_ONSTACK;
  }
  if (is("unknown")) {
    /* Not by way of the runtime: this is libc's own name for it. */
    extern int __sigaction(int, const struct sigaction *, struct sigaction *);
    __sigaction(SIGUSR1, &action, 0);
  } else {
    sigaction(SIGUSR1, &action, 0);
  }
  emit_loads(1, 1000);
  if (is("jump") || is("jump-alternate")) {
    /* Often, so that the chunks that end early come round. */
    for (volatile int i = 0; i < 100; i++)
      if (!sigsetjmp(outside, 1))
        interrupted();
  } else if (is("switch")) {
    getcontext(&outside_context);
    if (!left)
      interrupted();
    emit_loads(10000, 20000); /* until it shows */
  } else {
    interrupted();
  }
  emit_loads(2001, 1000);
  free(alternate.ss_sp);
  return 0;
}

int main(int argc, char **argv) {
  what = argc > 1 ? argv[1] : "";
  deepest = argc > 2 ? (int)strtol(argv[2], 0, 10) : 1;
  if (is("pthread_exit")) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
  } else {
    work(0);
  }
  if (child)
    waitpid(child, 0, 0);
  return 0;
}
