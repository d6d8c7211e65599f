// The loop with which bias from the environment's length was first shown (Mytkowicz et al.; Melhus and
// Jensen), as a function that takes some microseconds.
static int i, j, k;

__attribute__((noinline)) static void work(int rounds) {
  int g = 0, inc = 1;
  for (; g < rounds; g++) {
    i += inc;
    j += inc;
    k += inc;
  }
}

int main(void) {
  for (int call = 0; call < 10; call++)
    work(4096);
  return 0;
}
