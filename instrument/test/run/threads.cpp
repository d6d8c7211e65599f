// Each thread has a stream of its own, from its first access to its last.
// RUN: env MEMLODE_MODE=both %memlode-cxx -O2 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>&1 | %FileCheck %s

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

static std::atomic<long> Total;
static std::mutex Lock;
static thread_local long Mine[4];
static std::vector<std::unique_ptr<long>> Shared;

static void work(int Id) {
  for (int I = 0; I < 20000; ++I) {
    Mine[I & 3] += Id;
    Total += 1;
    if (I % 100 == 0) {
      std::lock_guard<std::mutex> Guard(Lock);
      Shared.push_back(std::make_unique<long>(I));
    }
  }
}

int main() {
  for (int Round = 0; Round < 3; ++Round) {
    std::vector<std::thread> Threads;
    for (int T = 0; T < 4; ++T)
      Threads.emplace_back(work, T);
    for (auto &T : Threads)
      T.join();
  }
  long Expected = 12 * 20000;
  printf("%ld %zu\n", Total.load() - Expected, Shared.size());
}

// CHECK: 0 2400
// CHECK: {{[1-9][0-9]*}} accesses agree
