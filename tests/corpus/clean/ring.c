// Copies messages through a ring buffer.
#include <stdio.h>
#include <string.h>

enum { SLOTS = 64, MESSAGES = 60000 };
struct message {
  unsigned length;
  char text[124];
};
static struct message ring[SLOTS];

int main(void) {
  struct message one = {0};
  unsigned long sum = 0;
  for (unsigned i = 0; i < MESSAGES; i++) {
    one.length = 1 + i % 124;
    memset(one.text, (int)i, one.length);
    memcpy(&ring[i % SLOTS], &one, sizeof one);
    const struct message *read = &ring[(i + SLOTS / 2) % SLOTS];
    for (unsigned at = 0; at < read->length; at++)
      sum += (unsigned char)read->text[at];
  }
  printf("%lu\n", sum);
  return 0;
}
