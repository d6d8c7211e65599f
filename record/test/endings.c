/* Ways for a program to end. Usage: endings WAY COUNT [LAST AMOUNT]; records loads of 1, 2, ..., COUNT first,
 * then LAST: a segment whose word is 0 (`free`), a range of so many bytes or a loop of so many turns. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emit.h"

static void emit_last(const char *what, uint64_t amount) {
  uint64_t words[] = {amount, 1 << 20, 1 << 21}, range[] = {1 << 20, amount};
  if (!strcmp(what, "free"))
    emit(FREE, 1, &amount);
  if (!strcmp(what, "range"))
    emit(RANGE, 2, range);
  if (!strcmp(what, "loop"))
    emit(LOOP, 3, words);
}

static void *run(void *arguments) {
  char **words = (char **)arguments;
  emit_loads(1, 1);
  emit_last(words[0], strtoull(words[1], 0, 0));
  return 0;
}

static void *cancel_me(void *arguments) {
  int previous;
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &previous);
  return run(arguments);
}

static sigjmp_buf back;
static void jump(int signal) {
  (void)signal;
  siglongjmp(back, 1);
}

int main(int argc, char **argv) {
  const char *way = argc > 1 ? argv[1] : "return";
  char *last[] = {argc > 3 ? argv[3] : "", argc > 4 ? argv[4] : "0"};
  uint64_t amount = strtoull(last[1], 0, 0);
  if (!strcmp(way, "thread") || !strcmp(way, "cancel") || !strcmp(way, "pause")) {
    /* A thread that has ended, and one that ends while others go on. */
    pthread_t thread;
    for (int i = 0; i < 2; i++) {
      pthread_create(&thread, 0, !strcmp(way, "cancel") ? cancel_me : run, (void *)last);
      pthread_join(thread, 0);
    }
    if (!strcmp(way, "pause"))
      usleep(300000);
    raise(SIGKILL);
  }
  emit_loads(1, argc > 2 ? strtoull(argv[2], 0, 10) : 10);
  emit_last(last[0], amount);
  if (!strcmp(way, "exec"))
    execl(argv[0], argv[0], "return", "1", (char *)0);
  if (!strcmp(way, "fail-exec")) {
    execl("/nowhere/at/all", "all", (char *)0);
    emit_last(last[0], amount);
    raise(SIGKILL);
  }
  if (!strcmp(way, "jump")) {
    /* A handler leaves the code for good that was in the middle of something. */
    signal(SIGSEGV, jump);
    if (!sigsetjmp(back, 1))
      *(volatile int *)0 = 1;
    emit_load(1);
    return 3;
  }
  if (!strcmp(way, "sleep")) {
    usleep(2500000);
    raise(SIGKILL);
  }
  if (!strcmp(way, "exit"))
    exit(3);
  if (!strcmp(way, "_exit"))
    _exit(3);
  if (!strcmp(way, "quick_exit"))
    quick_exit(3);
  if (!strcmp(way, "abort"))
    abort();
  if (!strcmp(way, "segv"))
    *(volatile int *)0 = 1;
  if (!strcmp(way, "kill"))
    raise(SIGKILL);
  if (!strcmp(way, "torn")) {
    /* Killed between the first and the last word of a segment. */
    *__memlode_cursor = (uint64_t)(uintptr_t)&memlode_test_anchors[BLOCK];
    __memlode_cursor[1] = 7;
    raise(SIGKILL);
  }
  if (!strcmp(way, "free-null")) {
    /* A last segment whose word is 0 by rights. */
    uint64_t base = 0;
    emit(FREE, 1, &base);
  }
  if (!strcmp(way, "hang")) {
    puts("ready");
    fflush(stdout);
    for (;;)
      pause();
  }
  if (!strcmp(way, "run")) {
    puts("ready");
    fflush(stdout);
    for (uint64_t i = 1;; i++)
      emit_load(i);
  }
  return 3;
}
