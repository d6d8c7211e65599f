// What a call has put into memory is read only where it must still be there: a new thread may have freed its handle by
// then, and a call that fails has put nothing. Here the handle is gone for certain.
// REQUIRES: x86
// RUN: %memlode-c -O2 -c %s -o %t.o && %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s
// RUN: %memlode-c -O0 -c %s -o %t.0.o && %link %t.0.o -o %t.0 && env MEMLODE_TEST_PRINT=1 %t.0 | %FileCheck %s
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <threads.h>
#include <unistd.h>

#define UNSEEN __attribute__((noinline, disable_sanitizer_instrumentation))

struct job {
  pthread_t thread;
  thrd_t other;
  long n;
};
static volatile int Gone;

UNSEEN static void wait_until_gone(void) {
  while (!Gone)
    usleep(100);
  Gone = 0;
}

// As slow to return as the scheduler may make it.
UNSEEN int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *), void *with) {
  static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  const int made = real(thread, how, body, with);
  if (made == 0 && with)
    wait_until_gone();
  return made;
}

UNSEEN int thrd_create(thrd_t *thread, thrd_start_t body, void *with) {
  static int (*real)(thrd_t *, thrd_start_t, void *);
  *(void **)&real = dlsym(RTLD_NEXT, "thrd_create");
  const int made = real(thread, body, with);
  if (made == thrd_success)
    wait_until_gone();
  return made;
}

static void *body(void *given) {
  if (given) {
    munmap(given, 4096);
    Gone = 1;
  }
  return NULL;
}

static int other_body(void *given) { return body(given) != NULL; }

static struct job *new_job(void) {
  return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// CHECK: enter main
int main(void) {
  for (int i = 0; i < 3; i++) {
    struct job *job = new_job();
    // CHECK: sync 9
    if (pthread_create(&job->thread, NULL, body, job) != 0)
      return 1;
    job = new_job();
    // CHECK: sync 9
    if (thrd_create(&job->other, other_body, job) != thrd_success)
      return 2;
  }
  pthread_t mine;
  // CHECK: sync 9
  if (pthread_create(&mine, NULL, body, NULL) != 0 || pthread_join(mine, NULL) != 0)
    return 3;
  void **nowhere = NULL;
  __asm__("" : "+r"(nowhere));
  // CHECK: alloc null
  if (posix_memalign(nowhere, 3, 8) != EINVAL)
    return 4;
  return 0;
}
