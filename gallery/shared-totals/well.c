/* One thread counts words of a text by length under a lock that nobody else takes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 1, WORDS = 6000, LONGEST = 64 };

struct totals { /* NOLINT(*Padding): what the lock guards has lines of its own. */
  pthread_mutex_t lock;
  _Alignas(64) long by_length[LONGEST];
};

static struct totals totals = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct part {
  unsigned seed;
};

static unsigned next_length(struct part *part) {
  part->seed = part->seed * 1103515245 + 12345;
  return (part->seed >> 16) % LONGEST;
}

static void *work(void *argument) {
  struct part *part = argument;
  for (int word = 0; word < WORDS; word++) {
    unsigned length = next_length(part);
    pthread_mutex_lock(&totals.lock);
    totals.by_length[length]++;
    pthread_mutex_unlock(&totals.lock);
  }
  return NULL;
}

int main(void) {
  static struct part parts[THREADS];
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    parts[i].seed = (unsigned)i + 1;
    if (pthread_create(&threads[i], NULL, work, &parts[i]) != 0)
      return 1;
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  long sum = 0;
  for (int length = 0; length < LONGEST; length++)
    sum = sum * 31 + totals.by_length[length];
  printf("%ld\n", sum);
  return 0;
}
