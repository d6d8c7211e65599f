// The nearest of many points, by a tree that halves space.
#include "truth.h"

enum { POINTS = 1 << 18 };

struct point {
  float at[3];
};

// The median of each part is in its middle: no pointers.
static void arrange(struct point *points, uint32_t low, uint32_t high, int axis) {
  if (high - low < 2)
    return;
  uint32_t middle = (low + high) / 2;
  for (uint32_t from = low, to = high - 1; from < to;) {
    float pivot = points[(from + to) / 2].at[axis];
    int64_t i = from;
    int64_t j = to;
    while (i <= j) {
      while (points[i].at[axis] < pivot)
        i++;
      while (points[j].at[axis] > pivot)
        j--;
      if (i <= j) {
        struct point kept = points[i];
        points[i++] = points[j];
        points[j--] = kept;
      }
    }
    if ((int64_t)middle <= j)
      to = (uint32_t)j;
    else if ((int64_t)middle >= i)
      from = (uint32_t)i;
    else
      break;
  }
  arrange(points, low, middle, (axis + 1) % 3);
  arrange(points, middle + 1, high, (axis + 1) % 3);
}

static float square(const struct point *one, const struct point *other) {
  float sum = 0;
  for (int axis = 0; axis < 3; axis++)
    sum += (one->at[axis] - other->at[axis]) * (one->at[axis] - other->at[axis]);
  return sum;
}

static void visit(const struct point *points, uint32_t low, uint32_t high, int axis,
                  const struct point *wanted, float *best) {
  if (low >= high)
    return;
  uint32_t middle = (low + high) / 2;
  float here = square(&points[middle], wanted);
  *best = here < *best ? here : *best;
  float apart = wanted->at[axis] - points[middle].at[axis];
  int next = (axis + 1) % 3;
  uint32_t near_low = apart < 0 ? low : middle + 1;
  uint32_t near_high = apart < 0 ? middle : high;
  visit(points, near_low, near_high, next, wanted, best);
  if (apart * apart < *best)
    visit(points, apart < 0 ? middle + 1 : low, apart < 0 ? high : middle, next, wanted, best);
}

static struct point anywhere(uint64_t *seed) {
  struct point point;
  for (int axis = 0; axis < 3; axis++)
    point.at[axis] = (float)(kernel_random(seed) % 100000);
  return point;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 19;
  struct point *points = kernel_allocate(POINTS, sizeof *points);
  for (uint32_t i = 0; i < POINTS; i++)
    points[i] = anywhere(&seed);
  arrange(points, 0, POINTS, 0);
  double sum = 0;
  for (long i = 0; i < rounds * 1000; i++) {
    struct point wanted = anywhere(&seed);
    float best = 1e30f;
    visit(points, 0, POINTS, 0, &wanted, &best);
    sum += best;
  }
  printf("%f\n", sum);
}
