// Threads in a ring hand a baton on, each waiting until it is its own turn: by a volatile or an atomic
// number, or by a flag for each that is set by an exchange. How often they look in vain is the schedule's
// doing, and says nothing.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 3 };
static long turns;
static struct {
#ifdef ATOMIC
  _Alignas(256) _Atomic long turn;
#else
  _Alignas(256) volatile long turn;
#endif
} baton;
static struct {
  _Alignas(256) atomic_flag busy;
} seats[THREADS];

static void *run(void *argument) {
  const long me = (long)argument;
  for (long i = 0; i < turns; i++) {
#ifdef FLAG
    while (atomic_flag_test_and_set_explicit(&seats[me].busy, memory_order_acquire)) // <-- look
      sched_yield();
    atomic_flag_clear_explicit(&seats[(me + 1) % THREADS].busy, memory_order_release); // <-- pass
#else
    const long mine = i * THREADS + me;
    while (baton.turn != mine) // <-- look
      sched_yield();
    baton.turn = mine + 1; // <-- pass
#endif
  }
  return NULL;
}

int main(int argc, char **argv) {
  turns = argc > 1 ? strtol(argv[1], NULL, 10) : 100;
  for (int i = 1; i < THREADS; i++)
    atomic_flag_test_and_set(&seats[i].busy);
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, run, (void *)i);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  printf("%ld\n", baton.turn);
  return 0;
}
