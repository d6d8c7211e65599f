// A particle grid whose cells chain to overflow cells when they are full. The disease: a cell is 400
// bytes of particles with the chain's pointer at its end, and every step walks the whole grid for that
// pointer alone: one cache line of each cell is fetched to find a null.
#include "scene.h"

#include <cstdio>
#include <memory>
#include <vector>

struct Cell {
  Drop drops[kPerCell];
  float density[kPerCell];
  float pressure[kPerCell];
  int count;
  Cell *next;
};

class Grid {
public:
  Grid() : cells_(kCells) {}

  void add(const Drop &drop) {
    Cell *cell = &cells_[cell_of(drop)];
    if (cell->count == 0)
      wet_.push_back(cell);
    while (cell->count == kPerCell) {
      if (!cell->next)
        cell->next = take();
      cell = cell->next;
    }
    cell->density[cell->count] = drop.speed * drop.speed;
    cell->drops[cell->count++] = drop;
  }

  // Energy of the drops in the wet cells, which it empties.
  double settle() {
    double energy = 0;
    for (Cell *first : wet_)
      for (Cell *cell = first; cell; cell = cell->next) {
        for (int i = 0; i < cell->count; i++)
          energy += 0.5 * cell->density[i] + cell->drops[i].z;
        cell->count = 0;
      }
    wet_.clear();
    return energy;
  }

  // Gives all overflow cells back to the pool; returns how many there were.
  __attribute__((noinline)) int recycle() {
    int recycled = 0;
    for (Cell &cell : cells_) {
      while (Cell *overflow = cell.next) { // <-- hot
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
      return pool_.back().get();
    }
    Cell *cell = free_;
    free_ = cell->next;
    cell->next = nullptr;
    return cell;
  }

  std::vector<Cell> cells_;
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
