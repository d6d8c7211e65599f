/* A program that forbids itself system calls. Usage: sealed strict | filter | syscall | threads | probe; each
 * of the first four does most of its work in a child that may only write and end. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "objects.h"

long cells[64];

__attribute__((noinline)) static void work(long count) {
  for (long i = 0; i < count; i++)
    cells[(cells[i & 63] + i) & 63] += i;
}

#define LET(name)                                                                                            \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static struct sock_filter rules[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    LET(write),
    LET(exit),
    LET(exit_group),
    LET(rt_sigreturn),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
static struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};

static atomic_int ready, sealed, done;
static void await(atomic_int *flag) {
  while (!*flag)
    ;
}
static void *beside(void *nothing) {
  work(10);
  ready = 1;
  await(&sealed);
  work(100000);
  done = 1;
  for (;;)
    ;
  return nothing;
}

static int seal(const char *how) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    return 1;
  if (!strcmp(how, "strict"))
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  if (!strcmp(how, "filter"))
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
}

static void child(const char *how) {
  int threads = !strcmp(how, "threads");
  pthread_t thread;
  if (threads) {
    pthread_create(&thread, 0, beside, 0);
    await(&ready);
  }
  work(1000);
  if (seal(how))
    _exit(9);
  if (threads) {
    sealed = 1;
    await(&done);
  }
  work(200000);
  const char *told = cells[5] ? "sealed\n" : "nothing\n";
  write(1, told, strlen(told));
  syscall(threads ? SYS_exit_group : SYS_exit, 3);
}

int main(int argc, char **argv) {
  (void)argc;
  OBJECT(cells);
  work(1000);
  if (!strcmp(argv[1], "probe")) {
    printf("%d ", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 1));
    printf("%ld ", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 1));
    printf("%ld ", syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, 0));
    printf("%d %d\n", prctl(PR_GET_DUMPABLE), syscall(SYS_getpid) == getpid());
    work(100000);
    return 0;
  }
  fflush(stdout);
  pid_t process = fork();
  if (!process)
    child(argv[1]);
  int status;
  waitpid(process, &status, 0);
  printf("%d\n", status);
  return 0;
}
