// In each round one thread changes an element of every line and the other reads all of them: the data are
// needed. Padded, it reads a copy that nobody writes.
#include "pair.h"

enum { COUNT = 1 << 14 };
static long *box, *copy;
static long total;

static void work(long self, long turns) {
  for (long round = 0; round < turns; round++) {
    if (self == 0) {
      for (long i = 5; i < COUNT; i += 8)
        box[i] += round;
    }
    pthread_barrier_wait(&gate);
    if (self == 1) {
#ifdef PADDED
      const long *from = copy;
#else
      const long *from = box;
#endif
      long sum = 0;
      for (long i = 0; i < COUNT; i++)
        sum += from[i];
      total += sum;
    }
    pthread_barrier_wait(&gate);
  }
}

int main(int argc, char **argv) {
  box = aligned_alloc(64, COUNT * sizeof *box);
  copy = aligned_alloc(64, COUNT * sizeof *copy);
  for (long i = 0; i < COUNT; i++)
    box[i] = copy[i] = 0;
  pair(argc, argv);
  printf("%ld\n", total);
  return 0;
}
