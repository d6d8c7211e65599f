/* Accesses that a program ends with. Usage: last fill BYTES | copy BYTES | loop COUNT | threads FREED | exec
 * 0 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "objects.h"

long cells[1000];
char *freed[200];

__attribute__((noinline)) static long walk(int count) {
  long sum = 0;
  for (int i = 0; i < count; i++)
    sum += cells[i * 7 % 1000]++;
  return sum;
}
__attribute__((noinline)) static void fill(long *p, size_t bytes) { memset(p, 0, bytes); }
__attribute__((noinline)) static void copy(long *p, size_t bytes) { memmove(p, p + 7, bytes); }
__attribute__((noinline)) static void loop(long *p, size_t count) {
  for (size_t i = 0; i < count - 1; i++)
    p[i] += 3;
}

static pthread_key_t key;
static void end(void *cell) {
  ++*(long *)cell;
  free(freed[(long *)cell - cells]);
}
static void *body(void *cell) {
  pthread_setspecific(key, cell);
  return 0;
}

/* Becomes another program, in one of all ways: the word in front of the call is rightly 0. */
static void become(int way) {
  char *words[] = {"sh", "-c", "exit 7", 0};
  switch (way) {
  case 0:
    free(freed[way]);
    execl("/bin/sh", "sh", "-c", "exit 7", (char *)0);
    break;
  case 1:
    free(freed[way]);
    execle("/bin/sh", "sh", "-c", "exit 7", (char *)0, environ);
    break;
  case 2:
    free(freed[way]);
    execlp("sh", "sh", "-c", "exit 7", (char *)0);
    break;
  case 3:
    free(freed[way]);
    execv("/bin/sh", words);
    break;
  case 4:
    free(freed[way]);
    execve("/bin/sh", words, environ);
    break;
  case 5:
    free(freed[way]);
    execvp("sh", words);
    break;
  case 6:
    free(freed[way]);
    execvpe("sh", words, environ);
    break;
  case 7:
    free(freed[way]);
    execveat(AT_FDCWD, "/bin/sh", words, environ, 0);
    break;
  default:
    free(freed[way]);
    fexecve(open("/bin/sh", O_RDONLY), words, environ);
  }
}

int main(int argc, char **argv) {
  (void)argc;
  OBJECT(cells);
  size_t amount = strtoull(argv[2], 0, 0);
  long sum = 0;
  if (argv[1][0] == 't') {
    pthread_key_create(&key, end);
    for (long i = 0; i < 200; i++) {
      pthread_t thread;
      freed[i] = amount ? malloc(amount) : 0;
      pthread_create(&thread, 0, body, &cells[i]);
      pthread_join(thread, 0);
    }
  } else if (argv[1][0] == 'e') {
    for (int way = 0; way < 9; way++) {
      const pid_t child = fork();
      if (child == 0) {
        ++cells[way];
        become(way);
        _exit(1);
      }
      int status = 0;
      waitpid(child, &status, 0);
      sum += WEXITSTATUS(status);
    }
  } else {
    sum = walk(1000);
  }
  if (argv[1][0] == 'f')
    fill(cells, amount);
  if (argv[1][0] == 'c')
    copy(cells, amount);
  if (argv[1][0] == 'l')
    loop(cells, amount);
  printf("%ld %ld\n", sum, cells[100]);
  return 0;
}
