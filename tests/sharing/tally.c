// Two threads count beside each other in a static array, each in a loop that is one record.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef PADDED
enum { APART = 256 };
#else
enum { APART = 8 };
#endif

static struct {
  volatile long votes;
  char pad[APART - sizeof(long)];
} tally[2] __attribute__((aligned(256)));
static _Alignas(256) long turns;
static _Alignas(256) pthread_barrier_t gate;

static void *poll(void *argument) {
  long mine = (long)argument;
  pthread_barrier_wait(&gate);
  for (long i = 0; i < turns; i++)
    tally[mine].votes++; // <-- vote
  return NULL;
}

int main(int argc, char **argv) {
  turns = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
  pthread_barrier_init(&gate, NULL, 2);
  pthread_t threads[2];
  for (long i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, poll, (void *)i);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  printf("%ld\n", tally[0].votes + tally[1].votes);
  return 0;
}
