// One thread counts at one end of a queue, another at the other: both ends are members of one
// record, which has one object, and so there are no elements to part.
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 100000 };
struct queue {
  long limit;
  volatile long put, bytes_put;
  volatile long got, bytes_got;
};
static struct queue queue = {.limit = 1};

static void *put(void *argument) {
  for (int i = 0; i < ROUNDS; i++) {
    queue.put = queue.put * 3 + i;
    queue.bytes_put = queue.put & 63;
  }
  return argument;
}

static void *get(void *argument) {
  for (int i = 0; i < ROUNDS; i++) {
    queue.got = queue.got * 5 + i;
    queue.bytes_got = queue.got & 63;
  }
  return argument;
}

int main(void) {
  pthread_t threads[2];
  if (pthread_create(&threads[0], NULL, put, NULL) || pthread_create(&threads[1], NULL, get, NULL))
    return 1;
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  printf("%ld\n", queue.put + queue.got + queue.limit);
  return 0;
}
