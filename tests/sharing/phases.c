// In each round a new thread counts in a word of its own; then it is joined. The words lie in one line, which
// is handed from thread to thread, but nobody ever fights for it. Beside them a thread counts far away for
// all rounds.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORDS = 8 };
static _Alignas(256) volatile long words[WORDS];
static struct {
  _Alignas(256) volatile long count;
} far;
static _Alignas(256) long rounds;

static void *count(void *argument) {
  volatile long *mine = argument;
  for (int i = 0; i < 100; i++)
    ++*mine; // <-- count
  return NULL;
}

static void *count_far(void *unused) {
  for (long i = 0; i < 100 * rounds; i++)
    far.count++;
  return unused;
}

int main(int argc, char **argv) {
  rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
  pthread_t beside, other;
  pthread_create(&beside, NULL, count_far, NULL);
  for (long i = 0; i < rounds; i++) {
    pthread_create(&other, NULL, count, (void *)&words[i % WORDS]);
    pthread_join(other, NULL);
  }
  pthread_join(beside, NULL);
  long sum = 0;
  for (int i = 0; i < WORDS; i++)
    sum += words[i];
  printf("%ld %ld\n", sum, far.count);
  return 0;
}
