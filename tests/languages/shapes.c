// What C data is made of. Behind `//=` stands what the accesses of the line must be called: kind VARIABLE :
// TYPE.MEMBER. More than one is separated by `;`. The functions are kept apart, so that each line is
// optimised as it stands.
// clang-format off: an access and its names stand in one line
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define APART __attribute__((noinline))

union number {
  long integer;
  double real;
  struct {
    int low, high;
  };
};
struct tagged {
  int kind;
  union number value;
};
struct bits {
  unsigned ready : 1, mode : 3, count : 12;
  unsigned char tail;
};
struct packet {
  unsigned short length;
  struct {
    unsigned char type, flags;
  } head;
  long payload[]; // as long as the packet is
};
struct cell {
  double weight[3];
  struct point {
    int x, y;
  } corner[2];
};
struct grid {
  int rows;
  struct cell cells[2][4];
};
typedef struct {
  long key;
  const char *text;
} entry;
struct chain {
  struct chain *next;
  struct list {
    struct list *before, *after;
  } link;
  long rank;
};

long table[4][8];
entry entries[5];

APART double real(struct tagged *t) { return t->value.real; } //= load t : tagged.value.real
APART int high(struct tagged *t) { return t->value.high; }    //= load t : tagged.value.high
APART void kind(struct tagged *t) { t->kind = 2; }            //= store t : tagged.kind
APART unsigned mode(struct bits *b) { return b->mode; }       //= load b : bits.mode
APART void count(struct bits *b, unsigned n) { b->count = n; } //= store b : bits.count
APART long last(struct packet *p) { return p->payload[p->length - 1]; } //= load p : packet.payload[]; load p : packet.length
APART int flags(struct packet *p) { return p->head.flags; }   //= load p : packet.head.flags
APART double weight(struct grid *g, int i, int j, int k) {
  return g->cells[i][j].weight[k]; //= load g : grid.cells[][].weight[]
}
APART int corner(struct grid *g, int i) { return g->cells[1][i].corner[1].y; } //= load g : grid.cells[][].corner[].y
APART long flat(int i, int j) { return table[i][j]; }         //= load table : long
APART const char *text(int i) { return entries[i].text; }     //= load entries : entry.text
APART long outer(struct list *l) {
  struct chain *c = (struct chain *)((char *)l - offsetof(struct chain, link));
  return c->rank; //= load c : chain.rank
}
APART void append(struct chain *c, struct chain *n) {
  c->link.after = &n->link;  //= store c : chain.link.after
  n->link.before = &c->link; //= store n : chain.link.before
}
APART long through(struct chain **c) { return (*c)->next->rank; } //= load c : chain *; load *c : chain.next; load (*c)->next : chain.rank
APART int raw(const void *p) { return ((const struct point *)p)[3].y; } //= load p : point.y
APART unsigned wide(const void *p) { return *(const unsigned *)p; }     //= load p : unsigned int

int main(void) {
  struct tagged t = {1, {.real = 1.5}};
  struct bits b = {1, 5, 7, 9};
  struct packet *p = malloc(sizeof *p + 4 * sizeof(long)); //= alloc p : packet
  memset(p, 0, sizeof *p + 4 * sizeof(long));
  p->length = 4;
  struct grid *g = calloc(1, sizeof *g);                   //= alloc g : grid
  struct chain *c = calloc(2, sizeof *c);                  //= alloc c : chain
  double *numbers = malloc(100 * sizeof *numbers);         //= alloc numbers : double
  char *copy = strdup("a copy");                           //= alloc copy : char
  void *later = malloc(8 * sizeof(struct point));          //= alloc points : point
  struct point *points = later;
  for (int i = 0; i < 8; i++)
    points[i].y = i;
  for (int i = 0; i < 100; i++)
    numbers[i] = i;
  c->next = c + 1;
  append(c, c + 1);
  kind(&t);
  count(&b, 3);
  printf("%g %u %ld %d %g %d %ld %d\n", real(&t), mode(&b), last(p), flags(p), weight(g, 1, 2, 0), corner(g, 2),
         flat(1, 2), text(3) ? 1 : 0);
  printf("%d %ld %ld %d %u %g %s\n", high(&t), outer(&c->link), through(&c), raw(later), wide(later), numbers[40], copy);
  free(copy);
  free(numbers);
  free(later);
  free(c);
  free(g);
  free(p);
}
