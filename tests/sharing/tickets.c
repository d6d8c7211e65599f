// Four threads, each with a counter of four bytes in an array that calloc cleared.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef PADDED
enum { APART = 64 };
#else
enum { APART = 1 };
#endif

enum { THREADS = 4 };
static volatile int *tickets;
static _Alignas(256) long turns;

static void *sell(void *argument) {
  long mine = (long)argument * APART;
  for (long i = 0; i < turns; i++)
    tickets[mine]++; // <-- sold
  return NULL;
}

int main(int argc, char **argv) {
  turns = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
  tickets = calloc(THREADS * 64, sizeof *tickets);
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, sell, (void *)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  printf("%d\n", tickets[0] + tickets[APART]);
  return 0;
}
