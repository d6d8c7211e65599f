// Each thread counts in a slot of its own.
#include "pair.h"

struct slot {
  volatile long hits;
  char pad[APART - sizeof(long)];
};
static struct slot *volatile slots;

static void work(long self, long turns) {
  struct slot *mine = &slots[self];
  for (long i = 0; i < turns; i++)
    mine->hits++;
}

int main(int argc, char **argv) {
  slots = aligned_alloc(256, 2 * 256);
  for (int i = 0; i < 2; i++)
    slots[i].hits = 0;
  pair(argc, argv);
  printf("%ld\n", slots[0].hits + slots[1].hits);
  return 0;
}
