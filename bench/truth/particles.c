// Particles as one array of structures, or as an array of each coordinate: a sweep that needs three of twelve
// numbers.
#include "truth.h"

enum { COUNT = 1 << 19 };

struct particle {
  float x, y, z;
  float speed[3];
  float force[3];
  float mass;
  int kind;
  int owner;
};

struct columns {
  float *x, *y, *z;
};

static APART float reach_whole(const struct particle *all) {
  float furthest = 0;
  for (size_t i = 0; i < COUNT; i++) {
    float square = all[i].x * all[i].x + all[i].y * all[i].y + all[i].z * all[i].z;
    furthest = square > furthest ? square : furthest;
  }
  return furthest;
}

static APART float reach_split(struct columns all) {
  float furthest = 0;
  for (size_t i = 0; i < COUNT; i++) {
    float square = all.x[i] * all.x[i] + all.y[i] * all.y[i] + all.z[i] * all.z[i];
    furthest = square > furthest ? square : furthest;
  }
  return furthest;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 6;
  struct particle *whole = kernel_allocate(COUNT, sizeof *whole);
  struct columns split = {kernel_allocate(COUNT, 4), kernel_allocate(COUNT, 4), kernel_allocate(COUNT, 4)};
  for (size_t i = 0; i < COUNT; i++) {
    whole[i].x = split.x[i] = (float)(kernel_random(&seed) % 1000);
    whole[i].y = split.y[i] = (float)(kernel_random(&seed) % 1000);
    whole[i].z = split.z[i] = (float)(kernel_random(&seed) % 1000);
  }
  float sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    sum += truth_is(argv, "columns") ? reach_split(split) : reach_whole(whole);
  }
  printf("%f\n", sum);
}
