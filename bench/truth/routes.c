// Shortest routes over a grid of random costs, with a binary heap of open places.
#include "truth.h"

enum { SIDE = 768, PLACES = SIDE * SIDE };

struct open {
  uint32_t cost;
  uint32_t place;
};

struct heap {
  struct open *open;
  uint32_t count;
};

static APART void push(struct heap *heap, struct open added) {
  uint32_t at = heap->count++;
  while (at > 0 && heap->open[(at - 1) / 2].cost > added.cost) {
    heap->open[at] = heap->open[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  heap->open[at] = added;
}

static APART struct open pop(struct heap *heap) {
  struct open least = heap->open[0];
  struct open last = heap->open[--heap->count];
  uint32_t at = 0;
  for (uint32_t child = 1; child < heap->count; child = 2 * at + 1) {
    if (child + 1 < heap->count && heap->open[child + 1].cost < heap->open[child].cost)
      child++;
    if (heap->open[child].cost >= last.cost)
      break;
    heap->open[at] = heap->open[child];
    at = child;
  }
  heap->open[at] = last;
  return least;
}

static APART uint32_t settle(struct heap *heap, const uint8_t *costs, uint32_t *best) {
  static const int STEPS[] = {1, -1, SIDE, -SIDE};
  uint32_t furthest = 0;
  while (heap->count > 0) {
    struct open here = pop(heap);
    if (here.cost > best[here.place])
      continue;
    furthest = here.cost;
    for (int way = 0; way < 4; way++) {
      uint32_t there = (here.place + (uint32_t)STEPS[way]) % PLACES;
      uint32_t cost = here.cost + costs[there];
      if (cost < best[there]) {
        best[there] = cost;
        push(heap, (struct open){cost, there});
      }
    }
  }
  return furthest;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 11;
  uint8_t *costs = kernel_allocate(PLACES, 1);
  uint32_t *best = kernel_allocate(PLACES, sizeof *best);
  struct heap heap = {kernel_allocate(4 * (size_t)PLACES, sizeof(struct open)), 0};
  for (uint32_t i = 0; i < PLACES; i++)
    costs[i] = (uint8_t)(1 + kernel_random(&seed) % 200);
  uint64_t sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    memset(best, 0xff, PLACES * sizeof *best);
    uint32_t from = kernel_random(&seed) % PLACES;
    best[from] = 0;
    push(&heap, (struct open){0, from});
    sum += settle(&heap, costs, best);
  }
  printf("%llu\n", (unsigned long long)sum);
}
