// Two atomic members of one type: the threads that wait count in one, and read the other.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

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
  // Both have their pointers before either runs: one that is copied when the other's is given back, with the
  // same count, would come after all that the other did.
  auto wait = [gate, turns] {
    for (long i = 0; i < turns; i++)
      gate->waiting.fetch_add(1, std::memory_order_relaxed); // <-- wait
  };
  auto pass = [gate, turns] {
    for (long i = 0; i < turns; i++)
      gate->passed.fetch_add(1, std::memory_order_relaxed); // <-- pass
  };
  std::thread waits(std::move(wait)), passes(std::move(pass));
  waits.join();
  passes.join();
  std::printf("%ld\n", gate->waiting.load() - gate->passed.load());
}
