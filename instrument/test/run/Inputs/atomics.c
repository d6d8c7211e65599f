// What libatomic has, for a program with one thread.
#include <stddef.h>
#include <string.h>

void load(size_t n, const volatile void *object, void *into, int order) __asm__("__atomic_load");
void store(size_t n, volatile void *object, void *from, int order) __asm__("__atomic_store");
_Bool exchange(size_t n, volatile void *object, void *expected, void *desired, int done,
               int failed) __asm__("__atomic_compare_exchange");
long add(volatile void *object, long by, int order) __asm__("__atomic_fetch_add_8");

void load(size_t n, const volatile void *object, void *into, int order) {
  memcpy(into, (const void *)object, n);
}
void store(size_t n, volatile void *object, void *from, int order) { memcpy((void *)object, from, n); }
_Bool exchange(size_t n, volatile void *object, void *expected, void *desired, int done, int failed) {
  const _Bool same = memcmp((void *)object, expected, n) == 0;
  memcpy(same ? (void *)object : expected, same ? desired : (void *)object, n);
  return same;
}
long add(volatile void *object, long by, int order) {
  const long was = *(volatile long *)object;
  *(volatile long *)object += by;
  return was;
}
