// A picture is blurred along its rows, and along its columns.
#include "truth.h"

enum { SIDE = 1536, REACH = 3 };

static APART void along_rows(const float *from, float *to) {
  for (size_t row = 0; row < SIDE; row++)
    for (size_t column = REACH; column < SIDE - REACH; column++) {
      float sum = 0;
      for (size_t i = column - REACH; i <= column + REACH; i++)
        sum += from[row * SIDE + i];
      to[row * SIDE + column] = sum / (2 * REACH + 1);
    }
}

static APART void along_columns(const float *from, float *to) {
  for (size_t column = 0; column < SIDE; column++) {
    float sum = 0;
    for (size_t row = 0; row < 2 * REACH; row++)
      sum += from[row * SIDE + column];
    for (size_t row = REACH; row < SIDE - REACH; row++) {
      sum += from[(row + REACH) * SIDE + column];
      to[row * SIDE + column] = sum / (2 * REACH + 1);
      sum -= from[(row - REACH) * SIDE + column];
    }
  }
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  float *picture = kernel_allocate(SIDE * SIDE, sizeof *picture);
  float *spare = kernel_allocate(SIDE * SIDE, sizeof *spare);
  for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
    picture[i] = (float)(i % 255);
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    along_rows(picture, spare);
    along_columns(spare, picture);
  }
  printf("%f\n", picture[SIDE * SIDE / 2]);
}
