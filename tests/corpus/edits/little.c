// Looks up small records at random. To split one whose parts are used together costs a second line for each.
#include <stdio.h>
#include <stdlib.h>

enum { RECORDS = 200000, LOOKUPS = 400000 };
struct record {
  long key;
  int count;
  int kind;
};

int main(void) {
  struct record *records = aligned_alloc(64, RECORDS * sizeof *records);
  if (!records)
    abort();
  for (int i = 0; i < RECORDS; i++)
    records[i] = (struct record){i * 7L, 0, i % 5};
  unsigned seed = 1;
  long sum = 0;
  for (int i = 0; i < LOOKUPS; i++) {
    struct record *record = &records[(seed = seed * 1103515245 + 12345) % RECORDS];
    sum += record->key;
    if (record->kind != 3)
      record->count++;
  }
  printf("%ld\n", sum);
  free(records);
  return 0;
}
