/* Threads that come and go. Usage: threads HOW COUNT LOADS; thread t records loads of t << 32 | 0, 1, ... */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emit.h"

static uint64_t loads;

static void *work(void *number) {
  emit_loads((uint64_t)(uintptr_t)number << 32, loads);
  return 0;
}

static pthread_barrier_t everyone;

static void *stay(void *number) {
  work(number);
  pthread_barrier_wait(&everyone);
  return 0;
}

static void *outlive(void *number) {
  usleep(100000);
  return work(number);
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  uint64_t count = strtoull(argv[2], 0, 10);
  loads = strtoull(argv[3], 0, 10);
  emit_loads(0, loads);
  if (!strcmp(argv[1], "waves")) {
    /* Eight at a time. */
    enum { WAVE = 8 };
    for (uint64_t t = 1; t <= count; t += WAVE) {
      pthread_t threads[WAVE];
      for (uint64_t i = 0; i < WAVE; i++)
        if (pthread_create(&threads[i], 0, work, (void *)(uintptr_t)(t + i)))
          return 1;
      for (int i = 0; i < WAVE; i++)
        pthread_join(threads[i], 0);
    }
    return 0;
  }
  if (!strcmp(argv[1], "crowd")) {
    /* All at once. */
    static pthread_t threads[10000];
    if (count >= sizeof threads / sizeof *threads)
      return 2;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    pthread_barrier_init(&everyone, 0, (unsigned)count + 1);
    for (uint64_t t = 1; t <= count; t++)
      if (pthread_create(&threads[t], &small, stay, (void *)(uintptr_t)t))
        return 1;
    pthread_barrier_wait(&everyone);
    for (uint64_t t = 1; t <= count; t++)
      pthread_join(threads[t], 0);
    return 0;
  }
  if (!strcmp(argv[1], "detached")) {
    for (uint64_t t = 1; t <= count; t++) {
      pthread_t thread;
      if (pthread_create(&thread, 0, outlive, (void *)(uintptr_t)t))
        return 1;
      pthread_detach(thread);
    }
    pthread_exit(0); /* the process lives on until its last thread ends */
  }
  return 2;
}
