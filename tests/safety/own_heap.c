/* A program with a malloc, a memcpy and a strlen of its own, each of which calls what records, and a library
 * that it opens. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>

enum { THREADS = 40, COPIES = 1000 };

static char heap[1 << 24];
static size_t used;
long sizes[64], data[8][8], copied[4];
struct {
  char bytes[40];
  long n;
} records[64];

__attribute__((noinline)) static void note(long *where, size_t n) {
  for (int i = 0; i < 4; i++)
    ((volatile long *)where)[i] += (long)n;
}

void *malloc(size_t n) {
  note(sizes, n);
  const size_t at = __atomic_fetch_add(&used, (n + 31) & ~(size_t)15, __ATOMIC_RELAXED);
  *(size_t *)(heap + at) = n;
  return heap + at + 16;
}
void free(void *p) { (void)p; }
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *old, size_t n) {
  char *p = malloc(n);
  for (size_t i = 0; old && i < n && i < ((size_t *)old)[-2]; i++)
    p[i] = ((volatile char *)old)[i];
  return p;
}
void *memalign(size_t to, size_t n) {
  char *p = malloc(n + to);
  return p + (to - (size_t)p % to) % to;
}
void *aligned_alloc(size_t to, size_t n) { return memalign(to, n); }
int posix_memalign(void **p, size_t to, size_t n) {
  *p = memalign(to, n);
  return 0;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
  note(copied, n);
  for (size_t i = 0; i < n; i++)
    ((volatile char *)to)[i] = ((const char *)from)[i];
  return to;
}

static long (*work)(long *);
static void *body(void *a) { return (void *)work(a); }

int main(int argc, char **argv) {
  (void)argc;
  void *plugin = dlopen(argv[1], RTLD_NOW);
  if (!plugin) {
    puts(dlerror());
    return 1;
  }
  work = (long (*)(long *))dlsym(plugin, "work");
  pthread_t thread;
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&thread, NULL, body, data[i % 8]);
    pthread_join(thread, NULL);
  }
  for (volatile int i = 0; i < COPIES; i++) {
    records[i & 63].n = i;
    memcpy(records[i & 63].bytes, argv[1], (size_t)(i & 15));
    records[i & 63].n++;
  }
  printf("%ld %ld\n", data[1][4], records[3].n);
  return 0;
}
