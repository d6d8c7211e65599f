/* A program that looks at its own signal handlers. Prints what is not as it would be without the runtime.
 * Usage: dispositions [ignored]: the latter in the child that inherits an ignored signal. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emit.h"

typedef void (*handler_t)(int);
extern handler_t bsd_signal(int, handler_t);

static volatile int calls, last_code, inside, deepest;

#define CHECK(condition)                                                                                     \
  do {                                                                                                       \
    if (!(condition))                                                                                        \
      printf("line %d: %s\n", __LINE__, #condition);                                                         \
  } while (0)

static void plain(int signal) {
  emit_load((uint64_t)signal);
  calls++;
}

static void other(int signal) {
  (void)signal;
  calls += 100;
}

static void informed(int signal, siginfo_t *info, void *context) {
  last_code = info->si_signo == signal && context ? info->si_code : -1;
}

static void recursive(int signal) {
  if (++inside > deepest)
    deepest = inside;
  if (inside < 3)
    raise(signal);
  inside--;
}

int main(int argc, char **argv) {
  struct sigaction action, found;
  emit_load(1);
  memset(&action, 0, sizeof action);
  if (argc > 1) {
    CHECK(sigaction(SIGUSR2, 0, &found) == 0 && found.sa_handler == SIG_IGN);
    CHECK(sigaction(SIGUSR1, 0, &found) == 0 && found.sa_handler == SIG_DFL);
    return 0;
  }

  /* sigaction tells what was installed, flags and mask included. */
  action.sa_handler = plain;
  action.sa_flags = SA_RESTART;
  sigaddset(&action.sa_mask, SIGHUP);
  CHECK(sigaction(SIGUSR1, &action, &found) == 0 && found.sa_handler == SIG_DFL);
  CHECK(sigaction(SIGUSR1, 0, &found) == 0 && found.sa_handler == plain);
  CHECK((found.sa_flags & SA_RESTART) && sigismember(&found.sa_mask, SIGHUP) == 1);
  raise(SIGUSR1);
  CHECK(calls == 1);
  /* What it tells can be installed again. */
  struct sigaction mine = found;
  action.sa_handler = other;
  CHECK(sigaction(SIGUSR1, &action, 0) == 0);
  CHECK(sigaction(SIGUSR1, &mine, &found) == 0 && found.sa_handler == other);
  raise(SIGUSR1);
  CHECK(calls == 2);
  CHECK(sigaction(SIGKILL, &action, 0) == -1 && errno == EINVAL);
  CHECK(sigaction(12345, 0, &found) == -1 && errno == EINVAL);

  /* The other ways in. */
  CHECK(signal(SIGUSR1, other) == plain);
  CHECK(signal(SIGUSR1, SIG_IGN) == other);
  raise(SIGUSR1);
  CHECK(signal(SIGUSR1, plain) == SIG_IGN);
  CHECK(bsd_signal(SIGUSR1, other) == plain);
  CHECK(signal(SIGKILL, plain) == SIG_ERR && errno == EINVAL);
  CHECK(__sysv_signal(SIGUSR1, plain) == other);
  raise(SIGUSR1);
  CHECK(calls == 3);
  CHECK(sigaction(SIGUSR1, 0, &found) == 0 && found.sa_handler == SIG_DFL); /* one shot */
  sigset_t blocked;
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"
  CHECK(sigset(SIGUSR1, plain) == SIG_DFL);
  CHECK(sigset(SIGUSR1, SIG_HOLD) == plain);
  raise(SIGUSR1);
  CHECK(calls == 3 && sigprocmask(SIG_BLOCK, 0, &blocked) == 0 && sigismember(&blocked, SIGUSR1) == 1);
  CHECK(sigset(SIGUSR1, plain) == SIG_HOLD);
  CHECK(calls == 4);
  CHECK(siginterrupt(SIGUSR1, 1) == 0);
#pragma clang diagnostic pop
  CHECK(sigaction(SIGUSR1, 0, &found) == 0 && found.sa_handler == plain && !(found.sa_flags & SA_RESTART));

  /* Flags do what they do. */
  action.sa_handler = plain;
  action.sa_flags = (int)SA_RESETHAND;
  CHECK(sigaction(SIGUSR1, &action, 0) == 0);
  raise(SIGUSR1);
  CHECK(calls == 5 && sigaction(SIGUSR1, 0, &found) == 0 && found.sa_handler == SIG_DFL);
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = informed;
  CHECK(sigaction(SIGUSR1, &action, 0) == 0);
  kill(getpid(), SIGUSR1);
  CHECK(last_code == SI_USER);
  CHECK(sigaction(SIGUSR1, 0, &found) == 0 && found.sa_sigaction == informed && found.sa_flags & SA_SIGINFO);
  action.sa_handler = recursive;
  action.sa_flags = SA_NODEFER;
  CHECK(sigaction(SIGUSR1, &action, 0) == 0);
  raise(SIGUSR1);
  CHECK(deepest == 3);

  /* libc's own use of handlers does not disturb ours. */
  action.sa_handler = plain;
  action.sa_flags = 0;
  CHECK(sigaction(SIGINT, &action, 0) == 0);
  CHECK(system("true") == 0);
  CHECK(sigaction(SIGINT, 0, &found) == 0 && found.sa_handler == plain);
  raise(SIGINT);
  CHECK(calls == 6);

  /* Only ignored signals stay so in another program. */
  CHECK(signal(SIGUSR2, SIG_IGN) == SIG_DFL);
  fflush(stdout);
  pid_t child = fork();
  if (!child) {
    execl("/proc/self/exe", argv[0], "ignored", (char *)0);
    _exit(1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}
