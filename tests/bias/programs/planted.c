// Does a tenth more work at one length of the environment in 4096, so that a sweep has something to find.
#include <stdlib.h>
#include <string.h>

int main(void) {
  const char *padding = getenv("MEMLODE_PADDING");
  // With its name, `=`, the zero at the end and the pointer to it.
  size_t added = padding ? strlen(padding) + sizeof("MEMLODE_PADDING=") + sizeof(char *) : 0;
  long rounds = added % 4096 == 2848 ? 3300000 : 3000000;
  volatile int sum = 0;
  for (long i = 0; i < rounds; i++)
    sum += 1;
  return 0;
}
