// The loop with which bias from the environment's length was first shown (Mytkowicz et al.; Melhus and
// Jensen), long enough to be measured as a whole program.
static int i, j, k;

int main(void) {
  int g = 0, inc = 1;
  for (; g < 3000000; g++) {
    i += inc;
    j += inc;
    k += inc;
  }
  return 0;
}
