// Chains of calls that the source states, through code of many kinds. Nothing in it keeps a frame pointer,
// but where the compiler needs one.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define APART __attribute__((noinline))

static volatile long sink;
static long values[1024];

APART static long walk(long steps) {
  long sum = 0;
  for (long at = 0; at < steps; at++) {
    sum += values[(sum + at) & 1023];
  }
  return sum;
}

// A frame of several hundred bytes.
APART static long middle(long steps) {
  long kept[32];
  kept[steps & 31] = walk(steps);
  sink = kept[steps & 31];
  return sink + 1;
}

APART static long outer(long depth, long steps) {
  long found = depth > 0 ? outer(depth - 1, steps) : middle(steps);
  sink = found;
  return found + 1;
}

// A frame of a size that only the run knows: rbp holds it.
APART static long sized(long count, long steps) {
  long *copy = __builtin_alloca((size_t)count * sizeof *copy);
  memcpy(copy, values, (size_t)count * sizeof *copy);
  sink = copy[count - 1];
  return walk(steps) + copy[0];
}

// A frame at a multiple of 64, whose size rules with expressions tell.
APART static long aligned(long steps) {
  _Alignas(64) volatile long here[8];
  here[steps & 7] = walk(steps);
  return here[steps & 7] + 1;
}

// Called by code of another file, which keeps no frame pointer either.
APART static int compared(const void *left, const void *right) {
  sink = walk(256);
  long a = *(const long *)left, b = *(const long *)right;
  return (a > b) - (a < b);
}

APART static long sorted(void) {
  long copy[32];
  memcpy(copy, values, sizeof copy);
  qsort(copy, 32, sizeof *copy, compared);
  return copy[0];
}

// The kernel calls it, anywhere.
APART static void interrupted(int number) { sink = walk(20000) + number; }

int main(int count, char **words) {
  (void)words;
  for (long at = 0; at < 1024; at++) {
    values[at] = at * 7919 % 1024;
  }
  if (count > 1) {
    struct itimerval often = {{0, 5000}, {0, 5000}};
    signal(SIGPROF, interrupted);
    setitimer(ITIMER_PROF, &often, NULL);
  }
  long sum = 0;
  for (int round = 0; round < 800; round++) {
    sum += outer(3, 50000);
    sum += sized(100 + round % 50, 50000);
    sum += aligned(50000);
    sum += sorted();
  }
  return sum == 0;
}
