// Trades of which each has the same currency and the same venue; the loop reads both.
#include <stdio.h>

enum { TRADES = 60000, ROUNDS = 5 };
struct trade {
  long price, currency, venue;
};
static struct trade trades[TRADES];
static long rates[8] = {3, 5, 7, 9, 11, 13, 15, 17};

int main(void) {
  for (int i = 0; i < TRADES; i++)
    trades[i] = (struct trade){i * 1000003L % 100003 * 100000000003L, 2, 5};
  long sum = 0;
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < TRADES; i++)
      sum += trades[i].price % 1000 * rates[trades[i].currency] + trades[i].venue;
  printf("%ld\n", sum);
  return 0;
}
