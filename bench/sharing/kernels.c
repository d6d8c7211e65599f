// What two threads can do to a line, or to many: one small kernel of each kind. `kernels NAME TURNS` runs
// one, `kernels` lists them.
//
// A thread's `mine` is a word of its own, in a line that both use or, PADDED, in one that nobody else does.
#include <stdatomic.h>
#include <string.h>

#include "pair.h"

enum { WORDS = 8, LINES = 512, MOST = WORDS * LINES };

#ifdef PADDED
enum { STEP = MOST + 4 * WORDS };
#else
enum { STEP = 1 };
#endif

typedef volatile long word;

static _Alignas(256) word table[2 * (MOST + 4 * WORDS)];
static _Alignas(256) word own[2][4 * WORDS];

// Instructions that need nothing but the one before.
#define DO1 __asm__ volatile("lea 1(%0), %0" : "+r"(filler));
#define DO5 DO1 DO1 DO1 DO1 DO1
#define DO10 DO5 DO5
#define DO20 DO10 DO10
#define DO50 DO20 DO20 DO10
#define DO100 DO50 DO50
#define DO300 DO100 DO100 DO100
#define DO1000 DO300 DO300 DO300 DO100

static void add(word *at) { atomic_fetch_add_explicit((_Atomic long *)at, 1, memory_order_relaxed); }

// A kernel: in each turn the first thread does this and the second that.
#define KERNEL(name, first, second)                                                                          \
  static void name(long self, long turns) {                                                                  \
    word *const mine = &table[self * STEP], *const other = mine + 3;                                         \
    long filler = 0;                                                                                         \
    (void)other;                                                                                             \
    if (self == 0)                                                                                           \
      for (long turn = 0; turn < turns; turn++) {                                                            \
        first                                                                                                \
      }                                                                                                      \
    else                                                                                                     \
      for (long turn = 0; turn < turns; turn++) {                                                            \
        second                                                                                               \
      }                                                                                                      \
    (void)filler;                                                                                            \
  }
#define BOTH(name, does) KERNEL(name, does, does)
#define LINE(line) mine[(line) * WORDS]

BOTH(plus, (*mine)++;)
BOTH(plus_10, (*mine)++; DO10)
BOTH(plus_20, (*mine)++; DO20)
BOTH(plus_50, (*mine)++; DO50)
BOTH(plus_100, (*mine)++; DO100)
BOTH(plus_300, (*mine)++; DO300)
BOTH(plus_1000, (*mine)++; DO1000)
BOTH(store, *mine = turn;)
BOTH(atomic_0, add(mine);)
BOTH(atomic_100, add(mine); DO100)
BOTH(atomic_1000, add(mine); DO1000)
BOTH(fence_100, *mine = turn; atomic_thread_fence(memory_order_seq_cst); DO100)
KERNEL(store_load, *mine = turn;, (void)*mine;)
KERNEL(store_load_100, *mine = turn; DO100, (void)*mine; DO100)
KERNEL(read_mostly, for (int i = 0; i < 200; i++)(void) * other; *mine = turn;
       , for (int i = 0; i < 200; i++)(void) * other;)
BOTH(lines_plus, for (long line = 0; line < 256; line++) LINE(line)++;)
BOTH(
    lines_store_load, for (long line = 0; line < 256; line++) {
      LINE(line) = turn;
      (void)LINE(line);
    })
BOTH(lines_atomic, for (long line = 0; line < 256; line++) add(&LINE(line));)
BOTH(
    lines_16_plus_20, for (long line = 0; line < 16; line++) {
      LINE(line)++;
      DO20
    })
KERNEL(lines_4_plus_load, for (long line = 0; line < 4; line++) LINE(line)++;
       , for (long line = 0; line < 4; line++)(void) LINE(line);)
BOTH(private_8, for (int i = 0; i < 8; i++) own[self][i] = turn; (*mine)++;)
KERNEL(plus_load_100, (*mine)++;, (void)*mine; DO100)
BOTH(store_load_other, *mine = turn; (void)*other;)
KERNEL(plus_plus_100, (*mine)++;, (*mine)++; DO100)
KERNEL(loads_plus_50, (void)other[0]; (void)other[1]; (void)other[2]; DO10 DO5 DO1 DO1 DO1, (*mine)++; DO50)
BOTH(own_lock_100,
     while (atomic_exchange_explicit((_Atomic long *)mine, 1, memory_order_acquire)){}(*other)++;
     atomic_store_explicit((_Atomic long *)mine, 0, memory_order_release); DO100)
BOTH(three_counters_10, mine[turn % 3 * 2]++; DO10)

// One counter for both; padded, one for each.
static void one_atomic(long self, long turns) {
  word *mine = &table[self * (STEP > 1 ? STEP : 0)];
  for (long turn = 0; turn < turns; turn++)
    add(mine);
}

// Words of neighbouring lines, in 128 bytes.
static void neighbours(long self, long turns) {
  word *mine = &table[self * (STEP > 1 ? STEP : WORDS)];
  for (long turn = 0; turn < turns; turn++)
    (*mine)++;
}

// All lines change hands in each turn; padded, each thread keeps its own.
static void handed_512(long self, long turns) {
  word *mine = &table[self * (STEP > 1 ? STEP : 0)];
  for (long turn = 0; turn < turns; turn++) {
    if (turn % 2 == self)
      for (long line = 0; line < LINES; line++)
        LINE(line) += turn;
    pthread_barrier_wait(&gate);
  }
}

#define NAMED(name) {#name, name}
static const struct {
  const char *name;
  void (*work)(long self, long turns);
} kernels[] = {
    NAMED(plus),
    NAMED(plus_10),
    NAMED(plus_20),
    NAMED(plus_50),
    NAMED(plus_100),
    NAMED(plus_300),
    NAMED(plus_1000),
    NAMED(store),
    NAMED(atomic_0),
    NAMED(atomic_100),
    NAMED(atomic_1000),
    NAMED(fence_100),
    NAMED(store_load),
    NAMED(store_load_100),
    NAMED(read_mostly),
    NAMED(lines_plus),
    NAMED(lines_store_load),
    NAMED(lines_atomic),
    NAMED(lines_16_plus_20),
    NAMED(lines_4_plus_load),
    NAMED(private_8),
    NAMED(plus_load_100),
    NAMED(store_load_other),
    NAMED(plus_plus_100),
    NAMED(loads_plus_50),
    NAMED(own_lock_100),
    NAMED(three_counters_10),
    NAMED(one_atomic),
    NAMED(neighbours),
    NAMED(handed_512),
};
enum { COUNT = sizeof kernels / sizeof *kernels };

static void (*chosen)(long self, long turns);

static void work(long self, long turns) { chosen(self, turns); }

int main(int argc, char **argv) {
  for (int i = 0; i < COUNT; i++)
    if (argc < 2)
      puts(kernels[i].name);
    else if (strcmp(argv[1], kernels[i].name) == 0)
      chosen = kernels[i].work;
  if (argc < 2)
    return 0;
  if (!chosen) {
    fprintf(stderr, "no kernel is called %s\n", argv[1]);
    return 2;
  }
  pair(argc - 1, argv + 1);
  return 0;
}
