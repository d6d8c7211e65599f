/* A program that closes a way to memlode, and then forks: children have to find it anew.
 * Usage: reach user | root DIR | descriptors | environment | alone DIR | killed; writes to cells in four
 * processes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "objects.h"

long cells[64];

__attribute__((noinline)) static void work(long count) {
  for (long i = 0; i < count; i++)
    cells[(i * 7) & 63] += i;
}

static int is(char **arguments, const char *way) { return !strcmp(arguments[1], way); }

static int close_way(char **arguments) {
  if (is(arguments, "user"))
    return setgroups(0, 0) || setgid(65534) || setuid(65534);
  if (is(arguments, "alone") && unshare(CLONE_NEWNET))
    return 1;
  if (is(arguments, "root") || is(arguments, "alone"))
    return chroot(arguments[2]) || chdir("/");
  if (is(arguments, "descriptors"))
    while (open("/", O_RDONLY) >= 0)
      ;
  return is(arguments, "environment") && clearenv();
}

int main(int argc, char **argv) {
  (void)argc;
  OBJECT(cells);
  work(1000);
  if (close_way(argv))
    return 9;
  for (int child = 0; child < 3; child++) {
    pid_t process = fork();
    if (!process) {
      work(100000);
      _exit(cells[7] == 0);
    }
    int status;
    waitpid(process, &status, 0);
    printf("%d\n", status);
  }
  work(1000);
  printf("%ld\n", cells[7]);
  return 0;
}
