// Four threads count in slots of their own beside each other, on the heap. The main thread clears them first
// and sums them up at last; in between, now and then, the threads meet at a lock.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PADDED
enum { SPARE = 30 };
#else
enum { SPARE = 0 };
#endif

enum { THREADS = 4, BETWEEN = 500 };
struct slot {
  volatile long hits;
  long spare[1 + SPARE];
};
static struct slot *slots;
static struct {
  _Alignas(256) pthread_mutex_t lock;
  _Alignas(256) long meetings;
} hall = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Alignas(256) long turns;

static void *count(void *argument) {
  struct slot *mine = &slots[(long)argument];
  for (long turn = 0; turn < turns; turn += BETWEEN) {
    for (int i = 0; i < BETWEEN; i++)
      mine->hits++; // <-- hit
    pthread_mutex_lock(&hall.lock);
    hall.meetings++;
    pthread_mutex_unlock(&hall.lock);
  }
  return NULL;
}

int main(int argc, char **argv) {
  turns = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
  slots = aligned_alloc(256, THREADS * 256);
  memset(slots, 0, THREADS * sizeof *slots);
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, count, (void *)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  long sum = 0;
  for (int i = 0; i < THREADS; i++)
    sum += slots[i].hits;
  printf("%ld after %ld meetings\n", sum, hall.meetings);
  return 0;
}
