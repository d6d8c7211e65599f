/* A program with a malloc of its own, which is recorded, and a plug-in with thread-local data, for which the
 * loader calls it in the middle of the plug-in's code. Usage: heap PLUGIN; -DPLUGIN: the plug-in. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "objects.h"

#ifdef PLUGIN

__thread long own[2000] = {1};
long shared[8];

/* All but one of these accesses are around the first look at the thread's own data. */
long work(long step) {
  shared[0] += step;
  shared[1] += shared[0];
  shared[2] += shared[1];
  own[step] += shared[2];
  shared[3] += 1;
  shared[4] += shared[3];
  return shared[4];
}

void tell(void) { OBJECT(shared); }

#else

enum { HEAP_BYTES = 1 << 26 };
static char heap[HEAP_BYTES];
static size_t used;
long sizes[64];

__attribute__((noinline)) static void note(size_t bytes) {
  for (int i = 0; i < 20; i++)
    sizes[i] += (long)bytes;
}
void *memalign(size_t alignment, size_t bytes) {
  note(bytes);
  size_t room = bytes + alignment + 16;
  uintptr_t at = (uintptr_t)heap + __atomic_fetch_add(&used, room, __ATOMIC_RELAXED);
  uintptr_t block = (at + 16 + alignment - 1) & -alignment;
  ((size_t *)block)[-1] = bytes;
  return (void *)block;
}
void *malloc(size_t bytes) { return memalign(16, bytes); }
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void **block, size_t alignment, size_t bytes) {
  return !(*block = memalign(alignment, bytes));
}
void *realloc(void *old, size_t bytes) {
  char *block = malloc(bytes);
  for (size_t i = 0, kept = old ? ((size_t *)old)[-1] : 0; i < kept && i < bytes; i++)
    block[i] = ((volatile char *)old)[i];
  return block;
}

static long (*work)(long);
static void *body(void *step) { return (void *)work((long)step); }

int main(int argc, char **argv) {
  (void)argc;
  void *plugin = dlopen(argv[1], RTLD_NOW);
  if (!plugin)
    return puts(dlerror());
  ((void (*)(void))dlsym(plugin, "tell"))();
  work = (long (*)(long))dlsym(plugin, "work");
  OBJECT(sizes);
  for (long i = 0; i < 80; i++) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, 0, body, (void *)i);
    pthread_join(thread, &result);
    printf("%ld\n", (long)result);
  }
  return 0;
}

#endif
