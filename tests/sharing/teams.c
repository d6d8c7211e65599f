// Threads of OpenMP count in slots beside each other, and then add up the columns of a table that the first
// one filled in. Only in the first loop do they take lines from each other.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 2 };
struct slot {
#ifdef PADDED
  _Alignas(256)
#endif
      volatile long hits;
};
static struct slot slots[THREADS] __attribute__((aligned(256)));
static long table[THREADS][1024] __attribute__((aligned(256)));

int main(int argc, char **argv) {
  const long turns = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
  long sum = 0;
  omp_set_num_threads(THREADS);
#pragma omp parallel for schedule(static)
  for (long i = 0; i < turns; i++)      // <-- loop
    slots[omp_get_thread_num()].hits++; // <-- hit
  for (int i = 0; i < THREADS; i++)
    for (int k = 0; k < 1024; k++)
      table[i][k] = slots[i].hits + k;
#pragma omp parallel for schedule(static) reduction(+ : sum)
  for (int i = 0; i < THREADS; i++)
    for (int k = 0; k < 1024; k++)
      sum += table[i][k]; // <-- add
  printf("%ld\n", sum);
  return 0;
}
