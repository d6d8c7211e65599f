// The same sessions. The cure: what a walk does not want lies in an array beside them, and three of them
// share a line where one took two.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SESSIONS = 40000, WALKS = 25 };

struct carried {
  char user[48];
  char address[48];
};

struct session {
  struct session *next;
  long expires;
  int carried;
};

static struct carried *carried;

static unsigned seed = 7;

static unsigned number(void) {
  seed = seed * 1664525 + 1013904223;
  return seed >> 8;
}

static struct session *make(int index) {
  struct session *session = malloc(sizeof *session);
  if (!session)
    abort();
  session->carried = index;
  session->expires = number() % 1000;
  memset(carried[session->carried].user, index, sizeof carried[session->carried].user);
  memset(carried[session->carried].address, index, sizeof carried[session->carried].address);
  return session;
}

int main(void) {
  static struct session *all[SESSIONS];
  carried = malloc(SESSIONS * sizeof *carried);
  if (!carried)
    abort();
  for (int i = 0; i < SESSIONS; i++)
    all[i] = make(i);
  for (int i = SESSIONS - 1; i > 0; i--) {
    int other = (int)(number() % (unsigned)(i + 1));
    struct session *moved = all[i];
    all[i] = all[other];
    all[other] = moved;
  }
  for (int i = 0; i < SESSIONS; i++)
    all[i]->next = i + 1 < SESSIONS ? all[i + 1] : NULL;
  long expired = 0;
  for (int walk = 0; walk < WALKS; walk++)
    for (struct session *session = all[0]; session; session = session->next)
      if (session->expires == walk) // <-- cured
        expired += carried[session->carried].user[walk];
  printf("%ld\n", expired);
  return 0;
}
