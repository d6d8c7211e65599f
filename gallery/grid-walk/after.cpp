// The same grid. The cure: the particles moved out of the cell. A cell is what the walk needs, its
// chain and its count; four of them share a cache line, and the payload is touched by who wants it.
#include "scene.h"

#include <cstdio>
#include <memory>
#include <vector>

struct Payload {
  Drop drops[kPerCell];
  float density[kPerCell];
  float pressure[kPerCell];
};

struct Cell {
  Cell *next;
  std::uint32_t payload; // index into the grid's payloads
  int count;
};

class Grid {
public:
  Grid() : cells_(kCells) {
    payloads_.reserve(kCells + kOverflowCells);
    payloads_.resize(kCells);
    for (int i = 0; i < kCells; i++)
      cells_[i].payload = static_cast<std::uint32_t>(i);
  }

  void add(const Drop &drop) {
    Cell *cell = &cells_[cell_of(drop)];
    if (cell->count == 0)
      wet_.push_back(cell);
    while (cell->count == kPerCell) {
      if (!cell->next)
        cell->next = take();
      cell = cell->next;
    }
    Payload &payload = payloads_[cell->payload];
    payload.density[cell->count] = drop.speed * drop.speed;
    payload.drops[cell->count++] = drop;
  }

  // Energy of the drops in the wet cells, which it empties.
  double settle() {
    double energy = 0;
    for (Cell *first : wet_)
      for (Cell *cell = first; cell; cell = cell->next) {
        const Payload &payload = payloads_[cell->payload];
        for (int i = 0; i < cell->count; i++)
          energy += 0.5 * payload.density[i] + payload.drops[i].z;
        cell->count = 0;
      }
    wet_.clear();
    return energy;
  }

  // Gives all overflow cells back to the pool; returns how many there were.
  __attribute__((noinline)) int recycle() {
    int recycled = 0;
    for (Cell &cell : cells_) {
      while (Cell *overflow = cell.next) { // <-- cured
        cell.next = overflow->next;
        overflow->next = free_;
        free_ = overflow;
        recycled++;
      }
    }
    return recycled;
  }

private:
  Cell *take() {
    if (!free_) {
      pool_.push_back(std::make_unique<Cell>());
      pool_.back()->payload = static_cast<std::uint32_t>(payloads_.size());
      payloads_.emplace_back();
      return pool_.back().get();
    }
    Cell *cell = free_;
    free_ = cell->next;
    cell->next = nullptr;
    return cell;
  }

  std::vector<Cell> cells_;
  std::vector<Payload> payloads_;
  std::vector<Cell *> wet_;
  std::vector<std::unique_ptr<Cell>> pool_;
  Cell *free_ = nullptr;
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
