/* A program that an ordinary user records, and one of root's that it starts.
 *
 *   users start ELEVATE   works, and runs ELEVATE with this program
 *   users elevate USERS   set-user-id: becomes root for good, with an empty environment, and runs USERS
 *   users work            works */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CELLS = 1000 };
static volatile long cells[CELLS];

static int work(void) {
  for (int round = 0; round < 50; round++)
    for (int i = 0; i < CELLS; i++)
      cells[i] += i;
  return cells[7] == 350 ? 0 : 1;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "work";
  if (!strcmp(what, "elevate")) {
    if (setgid(0) || setuid(0))
      return 2;
    execle(argv[2], argv[2], "work", (char *)0, (char *[]){0});
    return 3;
  }
  int status = work();
  if (!strcmp(what, "start")) {
    pid_t child = fork();
    if (!child) {
      execl(argv[2], argv[2], "elevate", argv[0], (char *)0);
      _exit(4);
    }
    if (waitpid(child, &status, 0) != child)
      return 5;
  }
  printf("%s as %d: %d\n", what, (int)geteuid(), status);
  return status != 0;
}
