// The same grid, as it should be: the walk goes over one number of each cell, and a payload begins at a line.
#include "scene.h"

#include <cstdio>
#include <vector>

struct alignas(64) Payload {
  Drop drops[kPerCell];
  float density[kPerCell];
  float pressure[kPerCell];
};

// Cells are numbers. 0 is none, for the first one is in nobody's chain.
class Grid {
public:
  Grid() : next_(kCells), count_(kCells), payloads_(kCells) {
    next_.reserve(kCells + kOverflowCells);
    count_.reserve(kCells + kOverflowCells);
    payloads_.reserve(kCells + kOverflowCells);
  }

  void add(const Drop &drop) {
    std::uint32_t cell = static_cast<std::uint32_t>(cell_of(drop));
    if (count_[cell] == 0)
      wet_.push_back(cell);
    while (count_[cell] == kPerCell) {
      if (!next_[cell]) {
        const std::uint32_t taken = take();
        next_[cell] = taken;
      }
      cell = next_[cell];
    }
    Payload &payload = payloads_[cell];
    payload.density[count_[cell]] = drop.speed * drop.speed;
    payload.drops[count_[cell]++] = drop;
  }

  // Energy of the drops in the wet cells, which it empties.
  double settle() {
    double energy = 0;
    for (const std::uint32_t first : wet_) {
      std::uint32_t cell = first;
      do {
        const Payload &payload = payloads_[cell];
        for (int i = 0; i < count_[cell]; i++)
          energy += 0.5 * payload.density[i] + payload.drops[i].z;
        count_[cell] = 0;
        cell = next_[cell];
      } while (cell);
    }
    wet_.clear();
    return energy;
  }

  // Gives all overflow cells back to the pool; returns how many there were.
  __attribute__((noinline)) int recycle() {
    int recycled = 0;
    for (int cell = 0; cell < kCells; cell++) {
      while (const std::uint32_t overflow = next_[cell]) {
        next_[cell] = next_[overflow];
        next_[overflow] = free_;
        free_ = overflow;
        recycled++;
      }
    }
    return recycled;
  }

private:
  std::uint32_t take() {
    if (!free_) {
      next_.push_back(0);
      count_.push_back(0);
      payloads_.emplace_back();
      return static_cast<std::uint32_t>(payloads_.size() - 1);
    }
    const std::uint32_t cell = free_;
    free_ = next_[cell];
    next_[cell] = 0;
    return cell;
  }

  std::vector<std::uint32_t> next_;
  std::vector<int> count_;
  std::vector<Payload> payloads_;
  std::vector<std::uint32_t> wet_;
  std::uint32_t free_ = 0;
};

int main() {
  Grid grid;
  Rain rain;
  double energy = 0;
  long recycled = 0;
  for (int step = 0; step < kSteps; step++) {
    for (int i = 0; i < kDropsPerStep; i++)
      grid.add(rain.next());
    energy += grid.settle();
    recycled += grid.recycle();
  }
  std::printf("%ld overflow cells, energy %.3f\n", recycled, energy);
}
