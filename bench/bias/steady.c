// Counts on for so many rounds; nothing of it depends on where anything lies. As many instructions as rounds,
// but for the start of the program.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
  unsigned long value = 1;
  for (long round = 0; round < 1000 * rounds; round++)
    value = (value ^ (value >> 13)) * 0x9e3779b97f4a7c15u + 1;
  printf("%lu\n", value);
  return 0;
}
