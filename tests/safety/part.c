/* A library of three, or of two: -DNAME=f -DARRAY=a [-DNEXT=g]. Touches its array and calls on. */
#include "objects.h"

int ARRAY[256];
#ifdef NEXT
int NEXT(int n, int (*back)(int));
#endif

int NAME(int n, int (*back)(int));
int NAME(int n, int (*back)(int)) {
  static int told;
  if (!told++)
    OBJECT(ARRAY);
  for (int i = 0; i < 256; i++)
    ARRAY[i] += n ^ i;
#ifdef NEXT
  n = NEXT(n + 1, back);
#else
  n = back(n);
#endif
  return n + ARRAY[n & 255];
}
