// Each thread counts under a lock of its own; the locks are in lines of their own, the counters are not.
#include "pair.h"

struct slot {
  volatile long hits;
  char pad[APART - sizeof(long)];
};
static struct slot *volatile slots;
static struct {
  _Alignas(256) pthread_mutex_t lock;
} own[2];

static void work(long self, long turns) {
  struct slot *mine = &slots[self];
  for (long i = 0; i < turns; i++) {
    pthread_mutex_lock(&own[self].lock);
    mine->hits++;
    pthread_mutex_unlock(&own[self].lock);
  }
}

int main(int argc, char **argv) {
  slots = aligned_alloc(256, 2 * 256);
  for (int i = 0; i < 2; i++) {
    slots[i].hits = 0;
    pthread_mutex_init(&own[i].lock, NULL);
  }
  pair(argc, argv);
  printf("%ld\n", slots[0].hits + slots[1].hits);
  return 0;
}
