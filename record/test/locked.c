/* A program that locks its memory, as an ordinary user who may lock 8 MiB. Usage: locked current|future.
 * Prints what mlockall returned, and MiB in memory if they are many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "emit.h"

int main(int argc, char **argv) {
  struct rlimit limit = {8 << 20, 8 << 20};
  emit_loads(1, 1000);
  if (setrlimit(RLIMIT_MEMLOCK, &limit) || (getuid() == 0 && setuid(65534)))
    return 1;
  int result = mlockall(MCL_CURRENT | (argc > 1 && !strcmp(argv[1], "future") ? MCL_FUTURE : 0));
  emit_loads(1001, 100000);
  printf("%d\n", result);
  char line[256];
  long kib = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && kib == 0 && fgets(line, sizeof line, status))
    if (!strncmp(line, "VmHWM:", 6))
      kib = strtol(line + 6, NULL, 10);
  if (status)
    fclose(status);
  if (kib == 0 || kib > 64 << 10)
    printf("%ld KiB in memory\n", kib);
  return 0;
}
