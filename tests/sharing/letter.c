// In each round one thread writes an envelope and the letter in it, and the other reads the letter: it is
// needed, and the envelope, which nobody reads, is not what the reader waits for.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
  volatile long envelope;
#ifdef PADDED
  char pad[248];
#endif
  volatile long letter;
} post __attribute__((aligned(256)));
static _Alignas(256) long turns;
static _Alignas(256) pthread_barrier_t gate;

static void *write_letters(void *unused) {
  for (long i = 0; i < turns; i++) {
    post.envelope = i; // <-- envelope
    post.letter = i;   // <-- write
    pthread_barrier_wait(&gate);
    pthread_barrier_wait(&gate);
  }
  return unused;
}

static void *read_letters(void *unused) {
  long sum = 0;
  for (long i = 0; i < turns; i++) {
    pthread_barrier_wait(&gate);
    sum += post.letter; // <-- read
    pthread_barrier_wait(&gate);
  }
  printf("%ld\n", sum);
  return unused;
}

int main(int argc, char **argv) {
  turns = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
  pthread_barrier_init(&gate, NULL, 2);
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, write_letters, NULL);
  pthread_create(&threads[1], NULL, read_letters, NULL);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  return 0;
}
