/* Children of a program. Usage: children HOW. Loads: the parent 1..100, a forked child 1000..1099. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emit.h"

static int wait_for(pid_t child) {
  int status;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

/* Ways to make a child that no fork handler hears of. */
static char stack[1 << 16] __attribute__((aligned(16)));

static int count_for_itself(void *argument) {
  emit_loads(1000, *(const uint64_t *)argument);
  return 0;
}

#if defined(__x86_64__)
static long unseen(long number, long first) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(first), "S"(0), "d"(0)
                   : "rcx", "r11", "r8", "r10", "memory");
  return result;
}
#endif

static pid_t make_child(const char *way) {
  struct {
    uint64_t words[11];
  } arguments = {{[4] = SIGCHLD}};
  if (!strcmp(way, "bare"))
    return _Fork();
  if (!strcmp(way, "clone"))
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (!strcmp(way, "clone3"))
    return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
#if defined(__x86_64__)
  if (!strcmp(way, "call"))
    return (pid_t)syscall(SYS_fork);
  if (!strcmp(way, "unseen") || !strcmp(way, "unseen-mapping"))
    return (pid_t)unseen(SYS_fork, 0);
#endif
  exit(2);
}

/* children WAY: a child that counts to N and ends as it likes: by _exit, or by a bare call behind a full
 * chunk. */
static int child_of_way(const char *way, uint64_t count) {
  pid_t child;
  if (!strcmp(way, "function"))
    child = clone(count_for_itself, stack + sizeof stack, SIGCHLD, &count);
  else
    child = make_child(way);
  if (child == 0) {
    if (!strcmp(way, "unseen-mapping")) /* what it maps does not come to lie where its parent's rings were */
      for (int i = 0; i < 500; i++) {
        size_t bytes = (size_t)(i + 1) << 13;
        char *mapped = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(mapped, 0, bytes);
        emit_load(1000);
        for (size_t k = 0; k < bytes; k++)
          if (mapped[k])
            _exit(3);
      }
    else
      emit_loads(1000, count);
    _exit(0);
  }
  emit_loads(51, 50);
  return wait_for(child);
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
  if (argc > 2)
    return child_of_way(how, strtoull(argv[2], 0, 10));
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
