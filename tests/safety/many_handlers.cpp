/* More handler functions than most programs have, installed one after the other and by turns; each is found
 * again. */
#include <csignal>
#include <cstring>
#include <utility>

#include "objects.h"

enum { HANDLERS = 700 };

long cells[HANDLERS];

template <int N> static void on(int) { cells[N]++; }

template <int... Ns> static void (*const *all(std::integer_sequence<int, Ns...>))(int) {
  static void (*const handlers[])(int) = {on<Ns>...};
  return handlers;
}

int main() {
  OBJECT(cells);
  void (*const *handlers)(int) = all(std::make_integer_sequence<int, HANDLERS>());
  long wrong = 0, sum = 0;
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < HANDLERS; i++) {
      struct sigaction action = {}, found;
      action.sa_handler = handlers[i];
      sigaction(SIGUSR1, &action, &found);
      wrong += found.sa_handler != (i + round ? handlers[(i + HANDLERS - 1) % HANDLERS] : SIG_DFL);
      raise(SIGUSR1);
      if (i % 7 == 0) { /* put one aside and back, as `system` does */
        signal(SIGUSR2, handlers[HANDLERS - 1 - i]);
        raise(SIGUSR2);
        action.sa_handler = handlers[(i + 1) % HANDLERS];
        sigaction(SIGUSR1, &action, &found);
        sigaction(SIGUSR1, &found, &action);
        wrong += action.sa_handler != handlers[(i + 1) % HANDLERS];
        raise(SIGUSR1);
      }
    }
  for (int i = 0; i < HANDLERS; i++)
    sum += cells[i] * i;
  printf("%ld %ld\n", wrong, sum);
  return 0;
}
