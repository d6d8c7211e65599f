/* Ways for a program to end. Usage: endings WAY COUNT; records loads of 1, 2, ..., COUNT first. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emit.h"

int main(int argc, char **argv) {
  const char *way = argc > 1 ? argv[1] : "return";
  emit_loads(1, argc > 2 ? strtoull(argv[2], 0, 10) : 10);
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
