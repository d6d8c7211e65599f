// Scans an array of arcs for the state of each, again and again: 4 of 64 bytes are used.
#include <stdio.h>
#include <stdlib.h>

enum { ARCS = 100000, SCANS = 8 };
struct arc {
  long cost, flow, upper, lower;
  int tail, head, state, index;
  long depth, time;
};

int main(void) {
  struct arc *arcs = calloc(ARCS, sizeof *arcs);
  if (!arcs)
    return 1;
  for (int i = 0; i < ARCS; i++)
    arcs[i] = (struct arc){
        .cost = i % 97, .upper = 10, .tail = i % 1000, .head = i % 999, .state = i % 3, .index = i};
  long open = 0;
  for (int scan = 0; scan < SCANS; scan++)
    for (int i = 0; i < ARCS; i++)
      if (arcs[i].state == scan % 3)
        open += i;
  // All of an arc is used once.
  for (int i = 0; i < ARCS; i++)
    open += arcs[i].cost + arcs[i].flow + arcs[i].upper + arcs[i].lower + arcs[i].tail + arcs[i].head +
            arcs[i].index + arcs[i].depth + arcs[i].time;
  printf("%ld\n", open);
  free(arcs);
  return 0;
}
