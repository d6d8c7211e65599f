/* Accesses of many kinds in a small program: what the simulator and Cachegrind are compared on.
   It calls the C library as little as it can, so that the trace stays short. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { GRID = 96, NODES = 6000, TABLE = 1 << 14, TEXT = 100000 };

struct node {
  struct node *next;
  uint64_t key;
  char payload[40]; /* 56 bytes: most nodes cross a line somewhere */
};

static double a[GRID][GRID], b[GRID][GRID], c[GRID][GRID];
static uint32_t table[TABLE];
static unsigned char text[TEXT], copy[TEXT + 64];

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

/* Columns against rows: strided reads, sequential writes. */
static void transpose_and_add(void) {
  for (size_t i = 0; i < GRID; i++)
    for (size_t j = 0; j < GRID; j++)
      c[i][j] = a[j][i] + b[i][j];
}

/* Read-modify-write at random places. */
static void histogram(size_t count) {
  for (size_t i = 0; i < count; i++)
    table[next_random() % TABLE] += 1;
}

/* Pointer chasing over a shuffled list. */
static uint64_t chase(struct node *nodes, size_t count, int rounds) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    nodes[i].key = i;
    nodes[i].next = &nodes[(i * 2654435761u + 12345) % count];
  }
  struct node *at = nodes;
  for (int round = 0; round < rounds; round++)
    for (size_t i = 0; i < count; i++) {
      sum += at->key;
      at = at->next;
    }
  return sum;
}

/* Words at odd addresses: one load in eight or so straddles two lines. */
static uint64_t unaligned(size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    uint64_t word;
    size_t at = next_random() % (TEXT - sizeof word);
    __builtin_memcpy(&word, text + at, sizeof word);
    sum += word;
    word ^= i;
    __builtin_memcpy(copy + (TEXT - at), &word, sizeof word);
  }
  return sum;
}

int main(void) {
  transpose_and_add();
  histogram(20000);
  struct node *nodes = malloc(NODES * sizeof *nodes);
  if (!nodes)
    return 1;
  uint64_t sum = chase(nodes, NODES, 2);
  sum += unaligned(20000);
  for (size_t i = 0; i < 10; i++)
    memcpy(copy + i, text, TEXT / 2 + i * 7);
  memset(text, (int)sum, TEXT);
  free(nodes);
  return 0;
}
