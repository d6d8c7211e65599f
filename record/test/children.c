/* Children of a program. Usage: children HOW. Loads: the parent 1..100, a forked child 1000..1099. */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emit.h"

static int wait_for(pid_t child) {
  int status;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  char *self_again[] = {argv[0], "leaf", 0};
  if (!strcmp(how, "leaf")) {
    emit_loads(5000, 100);
    return 0;
  }
  emit_loads(1, 50);
  int result = 0;
  if (!strcmp(how, "fork")) {
    pid_t child = fork();
    if (child == 0) {
      emit_loads(1000, 100);
      return 0;
    }
    emit_loads(51, 50);
    return wait_for(child);
  }
  if (!strcmp(how, "fork-twice")) {
    /* A grandchild, while the parent goes on. */
    pid_t child = fork();
    if (child == 0) {
      emit_loads(1000, 100);
      pid_t grandchild = fork();
      if (grandchild == 0) {
        emit_loads(2000, 100);
        _exit(0);
      }
      return wait_for(grandchild);
    }
    emit_loads(51, 50);
    return wait_for(child);
  }
  if (!strcmp(how, "fork-exec")) {
    pid_t child = fork();
    if (child == 0) {
      emit_loads(1000, 100);
      execv(argv[0], self_again);
      _exit(1);
    }
    result = wait_for(child);
  } else if (!strcmp(how, "vfork")) {
    pid_t child = vfork();
    if (child == 0) {
      emit_loads(51, 20); /* on the parent's memory, so in the parent's stream */
      execv("/bin/true", (char *[]){"true", 0});
      _exit(1);
    }
    emit_loads(71, 30);
    return wait_for(child);
  } else if (!strcmp(how, "spawn")) {
    pid_t child;
    result = posix_spawn(&child, argv[0], 0, 0, self_again, environ) ? 1 : wait_for(child);
  } else if (!strcmp(how, "system")) {
    result = system("exit 0");
  } else if (!strcmp(how, "exec")) {
    emit_loads(51, 50);
    execv(argv[0], self_again);
    return 1;
  } else if (!strcmp(how, "daemon")) {
    /* Outlives the program by far. */
    int ready[2];
    char byte;
    if (pipe(ready))
      return 1;
    if (fork() == 0) {
      setsid();
      emit_loads(1000, 100);
      close(0), close(1), close(2), close(ready[0]), close(ready[1]);
      sleep(30);
      _exit(0);
    }
    close(ready[1]);
    result = (int)read(ready[0], &byte, 1); /* 0 when the daemon has recorded and closed it */
  } else {
    return 2;
  }
  emit_loads(51, 50);
  return result;
}
