// Simulates a few machines whose state fits the first level, most of it seldom used.
#include <stdio.h>

enum { MACHINES = 16, STEPS = 300000 };
struct machine {
  unsigned state;
  char name[40];
  unsigned errors, starts;
};
static struct machine machines[MACHINES];

int main(void) {
  for (int i = 0; i < MACHINES; i++)
    snprintf(machines[i].name, sizeof machines[i].name, "machine %d", i);
  unsigned seed = 1;
  for (int step = 0; step < STEPS; step++) {
    struct machine *machine = &machines[(seed = seed * 1103515245 + 12345) >> 16 & (MACHINES - 1)];
    machine->state = machine->state * 5 + 1;
    if (machine->state % 4096 == 0)
      machine->errors++;
  }
  printf("%u %s\n", machines[3].state, machines[5].name);
  return 0;
}
