// Accounts of 128 bytes of which a scan needs two numbers: whole, or with these in an array of their own.
#include "truth.h"

enum { COUNT = 1 << 18 };

struct balance {
  int64_t amount;
  int64_t limit;
};

struct account {
  struct balance balance;
  char owner[64];
  char address[48];
};

static APART int64_t scan_whole(const struct account *accounts, const uint32_t *order) {
  int64_t over = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    const struct balance *balance = &accounts[order[i]].balance;
    if (balance->amount > balance->limit)
      over += balance->amount - balance->limit;
  }
  return over;
}

static APART int64_t scan_split(const struct balance *balances, const uint32_t *order) {
  int64_t over = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    const struct balance *balance = &balances[order[i]];
    if (balance->amount > balance->limit)
      over += balance->amount - balance->limit;
  }
  return over;
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 18;
  struct account *accounts = kernel_allocate(COUNT, sizeof *accounts);
  struct balance *balances = kernel_allocate(COUNT, sizeof *balances);
  uint32_t *order = truth_order(COUNT, 1, &seed);
  for (uint32_t i = 0; i < COUNT; i++) {
    accounts[i].balance = (struct balance){kernel_random(&seed) % 1000, kernel_random(&seed) % 1000};
    balances[i] = accounts[i].balance;
  }
  int64_t sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    sum += truth_is(argv, "split") ? scan_split(balances, order) : scan_whole(accounts, order);
  }
  printf("%lld\n", (long long)sum);
}
