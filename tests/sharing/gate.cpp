// Two atomic members of one type: the threads that wait count in one, and read the other.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

struct alignas(256) Gate {
  std::atomic<long> waiting{0};
#ifdef PADDED
  char pad[248];
#endif
  std::atomic<long> passed{0};
};

int main(int argc, char **argv) {
  const long turns = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1000;
  const auto gate = std::make_shared<Gate>();
  std::thread waits([gate, turns] {
    for (long i = 0; i < turns; i++)
      gate->waiting.fetch_add(1, std::memory_order_relaxed); // <-- wait
  });
  std::thread passes([gate, turns] {
    for (long i = 0; i < turns; i++)
      gate->passed.fetch_add(1, std::memory_order_relaxed); // <-- pass
  });
  waits.join();
  passes.join();
  std::printf("%ld\n", gate->waiting.load() - gate->passed.load());
}
