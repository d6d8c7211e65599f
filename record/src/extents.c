/* The bytes that functions of libc look at in strings, as ISO C defines them: instrumented code asks in front
 * of a call where the result does not tell. `own` is not NULL if the program has defined the function itself:
 * then it records what it does, and nothing is looked at here.
 *
 * Words of eight bytes are read where they are aligned, so that no page is touched that the function itself
 * would not touch. */
#include "runtime.h"

enum { WORD = sizeof(uint64_t) };

#define MEMLODE_ONES (~UINT64_C(0) / 255)

typedef uint64_t __attribute__((may_alias)) memlode_word;

/* Bytes up to and with the first zero, at most so many. */
static uint64_t string(const char *s, uint64_t most) {
  uint64_t i = 0;
  for (; i < most && (uintptr_t)(s + i) % WORD != 0; i++)
    if (s[i] == 0)
      return i + 1;
  for (; i + WORD <= most; i += WORD) {
    const uint64_t word = *(const memlode_word *)(s + i);
    if ((word - MEMLODE_ONES) & ~word & (MEMLODE_ONES << 7))
      break;
  }
  for (; i < most; i++)
    if (s[i] == 0)
      return i + 1;
  return most;
}

static unsigned char folded(char c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : (unsigned char)c; }

MEMLODE_EXPORT uint64_t __memlode_extent_string(const void *own, const char *s, uint64_t most) {
  return own || !s ? 0 : string(s, most);
}

MEMLODE_EXPORT uint64_t __memlode_extent_append(const void *own, const char *s, uint64_t most) {
  if (own)
    return 0;
  const uint64_t read = string(s, most);
  return read != 0 && s[read - 1] == 0 ? read : read + 1;
}

MEMLODE_EXPORT uint64_t __memlode_extent_compare(const void *own, const char *a, const char *b, uint64_t most,
                                                 uint32_t fold) {
  if (own)
    return 0;
  for (uint64_t i = 0; i < most; i++)
    if (a[i] == 0 || (fold ? folded(a[i]) != folded(b[i]) : a[i] != b[i]))
      return i + 1;
  return most;
}

/* The same of characters of four bytes. `most` counts characters, the result bytes. */
static uint64_t wide(const uint32_t *s, uint64_t most) {
  for (uint64_t i = 0; i < most; i++)
    if (s[i] == 0)
      return (i + 1) * sizeof *s;
  return most * sizeof *s;
}

MEMLODE_EXPORT uint64_t __memlode_extent_string_wide(const void *own, const uint32_t *s, uint64_t most) {
  return own || !s ? 0 : wide(s, most);
}

MEMLODE_EXPORT uint64_t __memlode_extent_append_wide(const void *own, const uint32_t *s, uint64_t most) {
  if (own)
    return 0;
  const uint64_t read = wide(s, most);
  return read != 0 && s[read / sizeof *s - 1] == 0 ? read : read + sizeof *s;
}

MEMLODE_EXPORT uint64_t __memlode_extent_compare_wide(const void *own, const uint32_t *a, const uint32_t *b,
                                                      uint64_t most) {
  if (own)
    return 0;
  for (uint64_t i = 0; i < most; i++)
    if (a[i] == 0 || a[i] != b[i])
      return (i + 1) * sizeof *a;
  return most * sizeof *a;
}
