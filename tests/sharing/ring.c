// A ring from one thread to another, whose ends lie in one line. FENCE: ordered by the fences of C11;
// without, by volatile accesses and the compiler. On x86 both are the same instructions.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef FENCE
#define PUBLISH atomic_thread_fence(memory_order_release)
#define OBSERVE atomic_thread_fence(memory_order_acquire)
#else
#define PUBLISH __asm__ volatile("" ::: "memory")
#define OBSERVE __asm__ volatile("" ::: "memory")
#endif

enum { ROOM = 1024 };
static struct {
  volatile unsigned long head;
#ifdef PADDED
  char pad[248];
#endif
  volatile unsigned long tail;
} ends __attribute__((aligned(256)));
static volatile long items[ROOM] __attribute__((aligned(256)));
static unsigned long turns;

static void *produce(void *unused) {
  for (unsigned long i = 0; i < turns; i++) {
    for (;;) {
      unsigned long tail = ends.tail; // <-- room
      OBSERVE;
      if (i - tail < ROOM)
        break;
    }
    items[i % ROOM] = (long)i;
    PUBLISH;
    ends.head = i + 1; // <-- put
  }
  return unused;
}

static void *consume(void *unused) {
  long sum = 0;
  for (unsigned long i = 0; i < turns; i++) {
    for (;;) {
      unsigned long head = ends.head; // <-- filled
      OBSERVE;
      if (head > i)
        break;
    }
    sum += items[i % ROOM];
    PUBLISH;
    ends.tail = i + 1; // <-- got
  }
  printf("%ld\n", sum);
  return unused;
}

int main(int argc, char **argv) {
  turns = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, produce, NULL);
  pthread_create(&threads[1], NULL, consume, NULL);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  return 0;
}
