// The same sessions, as they should be: the times lie in the order of the walk, which needs no links then.
#include <stdio.h>
#include <string.h>

enum { SESSIONS = 40000, WALKS = 25 };

struct carried {
  char user[48];
  char address[48];
};

static struct carried carried[SESSIONS];
static long times[SESSIONS];
static int which[SESSIONS];

static unsigned seed = 7;

static unsigned number(void) {
  seed = seed * 1664525 + 1013904223;
  return seed >> 8;
}

int main(void) {
  static long made[SESSIONS];
  for (int i = 0; i < SESSIONS; i++) {
    which[i] = i;
    made[i] = number() % 1000;
    memset(carried[i].user, i, sizeof carried[i].user);
    memset(carried[i].address, i, sizeof carried[i].address);
  }
  for (int i = SESSIONS - 1; i > 0; i--) {
    int other = (int)(number() % (unsigned)(i + 1));
    int moved = which[i];
    which[i] = which[other];
    which[other] = moved;
  }
  for (int i = 0; i < SESSIONS; i++)
    times[i] = made[which[i]];
  long expired = 0;
  for (int walk = 0; walk < WALKS; walk++)
    for (int i = 0; i < SESSIONS; i++)
      if (times[i] == walk)
        expired += carried[which[i]].user[walk];
  printf("%ld\n", expired);
  return 0;
}
