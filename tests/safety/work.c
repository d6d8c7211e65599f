/* Something ordinary, for surroundings that are not: memory from the heap, threads, a child. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "objects.h"

long totals[4];

struct node {
  struct node *next;
  long value;
};

static void *work(void *number) {
  long *total = &totals[(long)number];
  struct node *list = 0;
  for (long i = 0; i < 2000; i++) {
    struct node *node = malloc(sizeof *node);
    if (!node)
      abort();
    *node = (struct node){list, i ^ (long)number};
    list = node;
  }
  while (list) {
    struct node *next = list->next;
    *total += list->value;
    free(list);
    list = next;
  }
  return 0;
}

int main(int argc, char **argv) {
  OBJECT(totals);
  if (argc > 1 && !strcmp(argv[1], "root") && (chroot(argv[2]) || chdir("/")))
    return 9;
  int threads = argc > 1 && !strcmp(argv[1], "single") ? 1 : 4;
  for (long t = 0; t < threads; t++) {
    pthread_t thread;
    if (threads == 1 || pthread_create(&thread, 0, work, (void *)t))
      work((void *)t);
    else
      pthread_join(thread, 0);
  }
  fflush(stdout);
  pid_t child = threads == 1 ? -1 : fork();
  if (!child) {
    work((void *)0);
    _exit(totals[0] != 2 * totals[0] / 2);
  }
  int status = 0;
  if (child > 0)
    waitpid(child, &status, 0);
  printf("%ld %ld %ld %ld %d\n", totals[0], totals[1], totals[2], totals[3], status);
  return 0;
}
