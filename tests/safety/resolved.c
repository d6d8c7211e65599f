/* A function that is chosen when the program starts, by code that is recorded as well; and one that runs
 * before all constructors. Usage: resolved COUNT */
#include <stdlib.h>

#include "objects.h"

static __thread long threads[100] = {7};
long features[4], numbers[512];
static int looked;

__attribute__((noinline)) static int has(int feature) {
  features[feature & 3] += threads[0];
  looked++;
  return features[feature & 3] > 0;
}
static long forwards(const long *p, long count) {
  long sum = 0;
  for (long i = 0; i < count; i++)
    sum += p[i * 3 & 511];
  return sum;
}
static long backwards(const long *p, long count) { return forwards(p, -count); }
static long (*choose(void))(const long *, long) { return has(2) ? forwards : backwards; }
long total(const long *p, long count) __attribute__((ifunc("choose")));

#ifdef EARLY
static void early(int argc, char **argv, char **environment) {
  (void)argv, (void)environment;
  features[3] += argc;
}
__attribute__((section(".preinit_array"), used)) static void (*first)(int, char **, char **) = early;
#endif

int main(int argc, char **argv) {
  (void)argc;
  OBJECT(features);
  OBJECT(numbers);
  for (int i = 0; i < 512; i++)
    numbers[i] = i;
  printf("%ld %d %ld %ld\n", total(numbers, strtol(argv[1], NULL, 10)), looked, features[2], features[3]);
  return 0;
}
