/* Accesses that a program ends with. Usage: last fill BYTES | copy BYTES | loop COUNT | threads FREED */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"

long cells[1000];
char *freed[200];

__attribute__((noinline)) static long walk(int count) {
  long sum = 0;
  for (int i = 0; i < count; i++)
    sum += cells[i * 7 % 1000]++;
  return sum;
}
__attribute__((noinline)) static void fill(long *p, size_t bytes) { memset(p, 0, bytes); }
__attribute__((noinline)) static void copy(long *p, size_t bytes) { memmove(p, p + 7, bytes); }
__attribute__((noinline)) static void loop(long *p, size_t count) {
  for (size_t i = 0; i < count - 1; i++)
    p[i] += 3;
}

static pthread_key_t key;
static void end(void *cell) {
  ++*(long *)cell;
  free(freed[(long *)cell - cells]);
}
static void *body(void *cell) {
  pthread_setspecific(key, cell);
  return 0;
}

int main(int argc, char **argv) {
  (void)argc;
  OBJECT(cells);
  size_t amount = strtoull(argv[2], 0, 0);
  long sum = 0;
  if (argv[1][0] == 't') {
    pthread_key_create(&key, end);
    for (long i = 0; i < 200; i++) {
      pthread_t thread;
      freed[i] = amount ? malloc(amount) : 0;
      pthread_create(&thread, 0, body, &cells[i]);
      pthread_join(thread, 0);
    }
  } else {
    sum = walk(1000);
  }
  if (argv[1][0] == 'f')
    fill(cells, amount);
  if (argv[1][0] == 'c')
    copy(cells, amount);
  if (argv[1][0] == 'l')
    loop(cells, amount);
  printf("%ld %ld\n", sum, cells[100]);
  return 0;
}
