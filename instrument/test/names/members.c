// Member paths of structures in structures, in arrays and behind pointers: as remembered from the source, and by the
// walk over the optimised module alone.
// RUN: %names-c -O2 -g %s 2>&1 | %FileCheck %s
// RUN: env MEMLODE_NAMES_FORGET=1 %names-c -O2 -g %s 2>&1 | %FileCheck %s
// RUN: %names-c -O1 -g %s 2>&1 | %FileCheck %s
// RUN: %names-c -O3 -g %s 2>&1 | %FileCheck %s

struct pos { double x, y; };
typedef struct { int id; struct pos pos; } Particle;
struct cell { int y, z; };
struct box { int n; struct cell grid[4][4]; struct box *next; const char *names[3]; };
typedef struct box box_t;

struct cell grid[10][20];
static volatile box_t root;
double table[8][8];

// CHECK: nested: members.c:[[#@LINE+1]]:{{[0-9]+}} read 8 p : Particle . pos.x (
double nested(const Particle *p) { return p->pos.x; }

// CHECK: element: members.c:[[#@LINE+1]]:{{[0-9]+}} read 8 p : Particle . pos.y (
double element(Particle *p, long i) { return p[i].pos.y; }

// CHECK: global: members.c:[[#@LINE+1]]:{{[0-9]+}} write 4 grid : cell . z (
void global(int i, int j) { grid[i][j].z = 1; }

// CHECK: chain: members.c:[[#@LINE+2]]:{{[0-9]+}} read 8 b : box . next (
// CHECK: chain: members.c:[[#@LINE+1]]:{{[0-9]+}} read 4 b->next : box . grid[][].y (
int chain(box_t *b, int i, int j) { return b->next->grid[i][j - 1].y; }

// CHECK: string: members.c:[[#@LINE+2]]:{{[0-9]+}} read 8 b : box . names[] (
// CHECK: string: members.c:[[#@LINE+1]]:{{[0-9]+}} read 1 b->names[] : char . - (
char string(struct box *b, long i) { return b->names[i][2]; }

// CHECK: first: members.c:[[#@LINE+1]]:{{[0-9]+}} read 4 root : box . n (
int first(void) { return root.n; }

// CHECK: scalars: members.c:[[#@LINE+1]]:{{[0-9]+}} read 8 table : double . - (
double scalars(int i, int j) { return table[i][j]; }

// CHECK: through: members.c:[[#@LINE+2]]:{{[0-9]+}} read 8 pp : Particle * . - (
// CHECK: through: members.c:[[#@LINE+1]]:{{[0-9]+}} read 4 *pp : Particle . id (
int through(Particle **pp) { return (*pp)->id; }

// CHECK: list: members.c:[[#@LINE+3]]:{{[0-9]+}} read 4 b : box . n (
int list(struct box *b) {
  int s = 0;
  for (; b; b = b->next) s += b->n;
  return s;
}
