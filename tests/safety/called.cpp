// Code whose calls are not in the source: hooks of what compilers offer, each a function of the program's own
// that is recorded, and what unwinding runs. How often `touched` changes is printed, and known to the test.
#include <cstdint>
#include <cstdio>

#include "objects.h"

volatile unsigned long touched[8];

extern "C" {
#define HOOK __attribute__((no_instrument_function, no_sanitize("coverage"), xray_never_instrument))
HOOK void __cyg_profile_func_enter(void *, void *) { touched[1] += 1; }
HOOK void __cyg_profile_func_exit(void *, void *) { touched[2] += 1; }
HOOK void __cyg_profile_func_enter_bare() { touched[1] += 1; }
HOOK void __sanitizer_cov_trace_pc_guard_init(uint32_t *begin, uint32_t *end) {
  for (uint32_t *guard = begin; guard < end; ++guard)
    *guard = 1;
}
HOOK void __sanitizer_cov_trace_pc_guard(uint32_t *guard) { touched[3] += *guard; }
}

namespace {

// Its end is a clean-up, behind which the compiler calls _Unwind_Resume.
struct Guard {
  ~Guard() { touched[4] += 1; }
};

inline int small(int n) {
  touched[5] += 1;
  return n % 7;
}

__attribute__((noinline)) int leaf(int n) {
  char text[64];
  snprintf(text, sizeof text, "%d", n);
  touched[6] += text[0] != 0;
  if (small(n) == 0)
    throw n;
  return text[0];
}

__attribute__((noinline)) int middle(int n) {
  const Guard guard;
  return leaf(n) + small(n);
}

} // namespace

HOOK int main() { // its own calls would come between counts
  OBJECT(touched);
  long sum = 0;
  for (int n = 1; n <= 700; ++n) {
    try {
      sum += middle(n);
    } catch (int thrown) {
      touched[7] += 1;
      sum -= thrown;
    }
  }
  unsigned long counts[8], all = 0;
  for (int i = 0; i < 8; ++i)
    all += counts[i] = touched[i];
  printf("%ld, touched %lu times\n", sum, all);
  return counts[4] == 700 && counts[7] == 100 ? 0 : 1;
}
