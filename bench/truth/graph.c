// A random graph in compressed rows: breadth-first search, and rounds of rank propagation.
#include "truth.h"

enum { VERTICES = 1 << 18, EDGES = 1 << 21 };

struct graph {
  uint32_t *starts;
  uint32_t *targets;
};

static APART struct graph make(uint64_t *seed) {
  struct graph graph = {kernel_allocate(VERTICES + 2, 4), kernel_allocate(EDGES, 4)};
  uint32_t *sources = kernel_allocate(EDGES, 4);
  for (uint32_t i = 0; i < EDGES; i++) {
    sources[i] = kernel_random(seed) % VERTICES;
    graph.starts[sources[i] + 2]++;
  }
  for (uint32_t i = 0; i < VERTICES; i++)
    graph.starts[i + 2] += graph.starts[i + 1];
  for (uint32_t i = 0; i < EDGES; i++)
    graph.targets[graph.starts[sources[i] + 1]++] = kernel_random(seed) % VERTICES;
  free(sources);
  return graph;
}

static APART uint32_t search(struct graph graph, uint32_t from, uint32_t *distance, uint32_t *queue) {
  memset(distance, 0xff, VERTICES * sizeof *distance);
  uint32_t head = 0;
  uint32_t tail = 0;
  queue[tail++] = from;
  distance[from] = 0;
  while (head < tail) {
    uint32_t vertex = queue[head++];
    for (uint32_t edge = graph.starts[vertex]; edge < graph.starts[vertex + 1]; edge++) {
      uint32_t target = graph.targets[edge];
      if (distance[target] == UINT32_MAX) {
        distance[target] = distance[vertex] + 1;
        queue[tail++] = target;
      }
    }
  }
  return tail;
}

static APART void propagate(struct graph graph, const float *rank, float *next) {
  for (uint32_t vertex = 0; vertex < VERTICES; vertex++) {
    float sum = 0;
    for (uint32_t edge = graph.starts[vertex]; edge < graph.starts[vertex + 1]; edge++)
      sum += rank[graph.targets[edge]];
    next[vertex] = 0.15f + 0.1f * sum;
  }
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 4;
  struct graph graph = make(&seed);
  uint32_t *distance = kernel_allocate(VERTICES, 4);
  uint32_t *queue = kernel_allocate(VERTICES, 4);
  float *rank = kernel_allocate(VERTICES, 4);
  float *next = kernel_allocate(VERTICES, 4);
  uint64_t sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    if (!truth_is(argv, "rank"))
      sum += search(graph, kernel_random(&seed) % VERTICES, distance, queue);
    if (!truth_is(argv, "search")) {
      propagate(graph, rank, next);
      propagate(graph, next, rank);
    }
  }
  printf("%llu %f\n", (unsigned long long)sum, rank[0]);
  free(distance);
  free(queue);
  free(rank);
  free(next);
}
