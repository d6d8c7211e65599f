#include "objects.h"

int answers[256];
int first(int n, int (*back)(int));
int second(int n, int (*back)(int));

static int answer(int n) { return answers[n & 255]++ + n; }

int main(void) {
  OBJECT(answers);
  unsigned sum = 0;
  for (int i = 0; i < 1000; i++)
    sum = sum * 31 + (unsigned)first(i, answer) + (unsigned)second(i, answer);
  printf("%u\n", sum);
  return 0;
}
