/* longjmp out of deep calls, again and again. */
#include <setjmp.h>

#include "objects.h"

int depth_reached[64];
static jmp_buf out;

__attribute__((noinline)) static int descend(int depth, int limit) {
  depth_reached[depth]++;
  if (depth == limit)
    longjmp(out, depth + 1);
  int below = descend(depth + 1, limit);
  depth_reached[depth] += below; /* never: there is no way back */
  return below + 1;
}

int main(void) {
  OBJECT(depth_reached);
  long sum = 0;
  for (volatile int limit = 0; limit < 5000; limit++) {
    int how = setjmp(out);
    if (!how)
      descend(0, limit % 60);
    sum += how;
  }
  for (int i = 0; i < 64; i++)
    sum += depth_reached[i];
  printf("%ld\n", sum);
  return 0;
}
