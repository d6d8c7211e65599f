// Two threads, each with a variable of its own, which share a line.
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 60000 };
static _Alignas(64) volatile long left = 1;
static volatile long right = 1;
static unsigned char text[4096];

static void *one(void *argument) {
  for (int i = 0; i < ROUNDS; i++)
    if (text[i * 7 % 4096] < 200)
      left = left * 31 + i;
  return argument;
}

static void *other(void *argument) {
  for (int i = 0; i < ROUNDS; i++)
    if (text[i * 5 % 4096] < 200)
      right = right * 37 ^ i;
  return argument;
}

int main(void) {
  for (int i = 0; i < 4096; i++)
    text[i] = (unsigned char)(i * 31);
  pthread_t threads[2];
  if (pthread_create(&threads[0], NULL, one, NULL) || pthread_create(&threads[1], NULL, other, NULL))
    return 1;
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  printf("%ld\n", left ^ right);
  return 0;
}
