// Exceptions that pass through frames with and without instrumentation, run destructors, and are thrown
// again.
#include <cstdio>
#include <stdexcept>

#include "objects.h"

int caught[128];
int destroyed[128];

extern "C" int between(int (*leaf)(int), int n); // without instrumentation

struct Guard {
  int n;
  ~Guard() { destroyed[n % 128]++; }
};

__attribute__((noinline)) static int leaf(int n) {
  Guard guard{n};
  if (n % 3 == 0)
    throw std::runtime_error("three");
  if (n % 5 == 0)
    throw n;
  return caught[n % 128];
}

__attribute__((noinline)) static int again(int n) {
  Guard guard{n + 1};
  try {
    return between(leaf, n);
  } catch (const std::exception &) {
    caught[n % 128]++;
    throw;
  }
}

int main() {
  OBJECT(caught);
  OBJECT(destroyed);
  long sum = 0;
  for (int n = 0; n < 3000; n++) {
    try {
      sum += again(n);
    } catch (int value) {
      sum += value;
      caught[value % 128] += 2;
    } catch (...) {
      sum += 7;
    }
  }
  for (int i = 0; i < 128; i++)
    sum += caught[i] * 3 + destroyed[i];
  std::printf("%ld\n", sum);
}
