// The loop of microkernel.c in a coroutine whose stack is a static array in an object of its own (array.c):
// the order of the link alone decides which of its variables agree in their low 12 address bits.
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

extern char stack[16384];

static int i = 1, j = 1, k = 1;
static long rounds;
static ucontext_t caller, coroutine;

static void turns(void) {
  long last = rounds;
  int g = 0, inc = 1;
  for (; g < last; g++) {
    i += inc;
    j += inc;
    k += inc;
  }
}

int main(int argc, char **argv) {
  rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = sizeof stack;
  coroutine.uc_link = &caller;
  makecontext(&coroutine, turns, 0);
  swapcontext(&caller, &coroutine);
  printf("%d\n", i + j + k);
  return 0;
}
