/* A library in a name space of its own, with another copy of all that it needs: libc, and memlode's runtime.
 * Usage: apart LIBRARY */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>

#include "objects.h"

long outside[64];

__attribute__((noinline)) static long work(long step) {
  for (long i = 0; i < 50; i++)
    outside[(i * step) & 63] += i;
  return outside[step & 63];
}

static int answer(int n) { return n + 1; }
static int (*inside)(int, int (*)(int));

static void *both(void *sum) {
  for (int i = 0; i < 2000; i++)
    *(long *)sum += work(i) + inside(i, answer);
  return 0;
}

int main(int argc, char **argv) {
  (void)argc;
  OBJECT(outside);
  for (int i = 0; i < 100; i++)
    work(i);
  void *library = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
  if (!library)
    return puts(dlerror());
  inside = (int (*)(int, int (*)(int)))dlsym(library, "part");
  long sum = 0, sums = 0;
  pthread_t thread;
  both(&sum);
  pthread_create(&thread, 0, both, &sums);
  pthread_join(thread, 0);
  printf("%ld %ld\n", sum, sums);
  return 0;
}
