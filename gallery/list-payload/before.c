// Sessions in a list, ordered by when they expire, which is not the order they were made in. The disease: a
// walk wants two words of each, and what a session carries lies between them and the next one's.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SESSIONS = 40000, WALKS = 25 };

struct session {
  struct session *next;
  long expires;
  char user[48];
  char address[48];
};

static unsigned seed = 7;

static unsigned number(void) {
  seed = seed * 1664525 + 1013904223;
  return seed >> 8;
}

static struct session *make(int index) {
  struct session *session = malloc(sizeof *session);
  if (!session)
    abort();
  session->expires = number() % 1000;
  memset(session->user, index, sizeof session->user);
  memset(session->address, index, sizeof session->address);
  return session;
}

int main(void) {
  static struct session *all[SESSIONS];
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
      if (session->expires == walk) // <-- hot
        expired += session->user[walk];
  printf("%ld\n", expired);
  return 0;
}
