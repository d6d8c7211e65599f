/* An image with a bit of everything that is read from one. */
struct point {
  int x;
  long y[2];
} points[4];
static int hidden;

long sum(const struct point *p, int n) {
  long total = hidden++;
  for (int i = 0; i < n; ++i)
    total += p[i].x + p[i].y[1];
  return total;
}

void _start(void) { points[1].x = (int)sum(points, 4); }
