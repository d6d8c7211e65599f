// Three threads own a record of six counters each; the records are of 48 bytes and share lines, at many
// places of the code. One counter is everybody's, at one place, and counts less often.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3 };
struct ledger {
#ifdef PADDED
  _Alignas(256)
#endif
      volatile long rent;
  volatile long food, fuel, fees, gifts, taxes;
};
static struct ledger ledgers[THREADS] __attribute__((aligned(256)));
static struct {
  _Alignas(256) _Atomic long entries;
} book;
static _Alignas(256) long turns;
static _Alignas(256) pthread_barrier_t gate;

static void *keep(void *argument) {
  struct ledger *mine = &ledgers[(long)argument];
  for (long i = 0; i < turns; i++) {
    pthread_barrier_wait(&gate);
    switch ((i * 7 + (long)argument) % 6) {
    case 0:
      mine->rent++;
      mine->food++;
      break;
    case 1:
      mine->food++;
      mine->fuel++;
      break;
    case 2:
      mine->fuel++;
      mine->fees++;
      break;
    case 3:
      mine->fees++;
      mine->gifts++;
      break;
    case 4:
      mine->gifts++;
      mine->taxes++;
      break;
    default:
      mine->taxes++;
      mine->rent++;
    }
    if (i % 8 == 0)
      atomic_fetch_add(&book.entries, 1);
  }
  return NULL;
}

int main(int argc, char **argv) {
  turns = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
  pthread_barrier_init(&gate, NULL, THREADS);
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, keep, (void *)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  printf("%ld\n", book.entries);
  return 0;
}
