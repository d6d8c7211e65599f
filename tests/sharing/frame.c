// A function asks a helper to fill in a form on its stack, and returns. Where the form was, another function
// has notes of its own: nobody wrote to those but itself, although the helper's line is taken away.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
  _Alignas(256) volatile long *form;
} desk;
static _Alignas(256) long turns;
static _Alignas(256) pthread_barrier_t gate;

static void *fill_in(void *unused) {
  for (long i = 0; i < turns; i++) {
    pthread_barrier_wait(&gate);
    desk.form[0]++; // <-- fill
    pthread_barrier_wait(&gate);
  }
  return unused;
}

static __attribute__((noinline)) void ask(long i) {
  _Alignas(64) volatile long form[8];
  form[0] = i; // <-- ask
  if (desk.form != form)
    desk.form = form;
  pthread_barrier_wait(&gate);
  // The helper is done with the form by then; its address stays where it was, so that it is written once.
  pthread_barrier_wait(&gate); // NOLINT(clang-analyzer-core.StackAddressEscape)
}

static __attribute__((noinline)) void take_notes(long i) {
  volatile long notes[64];
  for (int k = 0; k < 64; k++)
    notes[k] = i; // <-- note
}

static void *work(void *unused) {
  for (long i = 0; i < turns; i++) {
    ask(i);
    take_notes(i);
  }
  return unused;
}

int main(int argc, char **argv) {
  turns = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
  pthread_barrier_init(&gate, NULL, 2);
  pthread_t helper;
  pthread_create(&helper, NULL, fill_in, NULL);
  work(NULL); // it meets the helper before that has done anything
  pthread_join(helper, NULL);
  return 0;
}
