"""Programs whose pages are opened: names that a browser would obey, many threads, and nothing to gain."""

# Members of which the compiler itself says where they lie, and a name of each kind that may come from a stranger.
HOSTILE = r'''
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct inner { short a; double b; };
struct record {
  char first;
  long hot;
  struct inner inner;
  int bits : 3;
  int more_bits : 9;
  char tail[70];
  long last;
};

#line 1 "</script><script>alert('file')</script>\"'&.c"
__attribute__((noinline)) long walk(struct record *all, long n) __asm__("</script><img src=x onerror=alert(1)>");
long walk(struct record *all, long n) {
  long sum = 0;
  for (long i = 0; i < n; i++) sum += all[(i * 7919) % n].hot++ + (long)all[(i * 104729) % n].inner.b;
  return sum;
}

int main(int argc, char **argv) {
  long n = 100000;
  struct record *all = malloc(n * sizeof *all);
  for (long i = 0; i < n; i++) all[i] = (struct record){.hot = i, .inner.b = argc};
  long sum = 0;
  for (int i = 0; i < 3; i++) sum += walk(all, n);
#define SAY(name, member) fprintf(stderr, "offset %s %zu\n", name, offsetof(struct record, member))
  SAY("first", first); SAY("hot", hot); SAY("inner.b", inner.b); SAY("tail", tail); SAY("last", last);
  fprintf(stderr, "size %zu\n", sizeof(struct record));
  return sum == 1 || argc > 9 || !argv;
}
'''

# Each thread has a counter beside that of the next one.
THREADS = r'''
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 160, TURNS = 400 };
static struct { volatile long hits; } slots[THREADS];

static void *work(void *of) {
  for (int i = 0; i < TURNS; i++) slots[(long)of].hits++;
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  for (long i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  long sum = 0;
  for (int i = 0; i < THREADS; i++) sum += slots[i].hits;
  printf("%ld\n", sum);
  return 0;
}
'''

# All that it touches fits the first cache.
CLEAN = r'''
#include <stdio.h>
static int table[256];
int main(void) {
  long sum = 0;
  for (int i = 0; i < 200000; i++) sum += table[i & 255] += i;
  printf("%ld\n", sum);
  return 0;
}
'''

# Runs for half a second, so that some bursts of recording fall into it.
SAMPLED = r'''
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct line { long key; char rest[56]; };

__attribute__((noinline)) static unsigned long walk(struct line *lines, unsigned long at, long *sum) {
  for (int i = 0; i < 1000; i++) {
    at = at * 6364136223846793005 + 1442695040888963407;
    *sum += lines[at >> 48].key;
  }
  return at;
}

int main(void) {
  struct line *lines = calloc(1 << 16, sizeof *lines);
  unsigned long at = 1;
  long sum = 0;
  while (clock() < CLOCKS_PER_SEC / 2) at = walk(lines, at, &sum);
  printf("%d\n", at != 0 && sum == 0);
  return 0;
}
'''


def many():
    """A program that allocates on 10⁵ call paths, and has 300 types, each with members and lines of its own."""
    depth, calls, types = 5, 10, 300
    lines = ["#include <stdlib.h>", "long sink;", f"__attribute__((noinline)) static void level{depth}(void) {{",
             "  volatile long *all = malloc(24);", "  all[0] = 1;", "  sink += all[0];", "}"]
    for level in reversed(range(depth)):
        lines += [f"__attribute__((noinline)) static void level{level}(void) {{"]
        lines += [f"  level{level + 1}();"] * calls + ["}"]
    for number in range(types):
        lines += [f"struct type{number} {{ long first, second, third; }};",
                  f"static volatile struct type{number} of_{number}[4];",
                  f"__attribute__((noinline)) static void use{number}(int at) {{",
                  f"  of_{number}[at].first++;", f"  of_{number}[at].third += 2;", "}"]
    lines += ["int main(void) {", "  level0();", "  for (int at = 0; at < 4; at++) {"]
    lines += [f"    use{number}(at);" for number in range(types)]
    return "\n".join([*lines, "  }", "  return sink == 0;", "}", ""])

# Columns of one set conflict, an array is larger than a cache, and the first look at anything is cold. Two threads
# count in one line, which is no cause of a cache's own.
CAUSES = r"""
#include <pthread.h>
static volatile double columns[64][512];
static volatile char large[1 << 18];
static volatile long counters[8];
static volatile double sum;

static void *count(void *which) {
  for (long i = 0; i < 20000; i++)
    counters[(long)which]++;
  return 0;
}

int main(void) {
  pthread_t threads[2];
  for (long i = 0; i < 2; i++)
    pthread_create(&threads[i], 0, count, (void *)i);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], 0);
  for (int round = 0; round < 200; round++)
    for (int row = 0; row < 64; row++)
      sum += columns[row][round % 4];
  for (int round = 0; round < 4; round++)
    for (int at = 0; at < 1 << 18; at += 64)
      sum += large[at];
  return 0;
}
"""
