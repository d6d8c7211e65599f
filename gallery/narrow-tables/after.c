// The same tiles. The cure: what is stored is as wide as its values: four bytes, where it was 16.
#include <stdio.h>

enum { TILES = 1 << 17, LOOKUPS = 600000 };

#define HEIGHT short
#define FLAG signed char

struct tile {
  HEIGHT height;
  FLAG kind;
  FLAG owner;
};

static struct tile tiles[TILES];

int main(void) {
  unsigned long seed = 9;
  for (int i = 0; i < TILES; i++) {
    tiles[i].height = i % 1000;
    tiles[i].kind = i % 5;
    tiles[i].owner = i % 100;
  }
  long sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    struct tile *tile = &tiles[(seed >> 33) % TILES];
    if (tile->kind != 3) // <-- cured
      sum += tile->height + tile->owner;
  }
  printf("%ld\n", sum);
  return 0;
}
