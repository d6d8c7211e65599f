/* The hashes of libstdc++'s unordered containers; see tree.cpp. They give the library's values, by which
 * programs see in what order a container has its elements.
 */
#include <bits/hash_bytes.h>

#include <cstdint>
#include <cstring>

namespace std {
namespace {

constexpr uint64_t Factor = 0xc6a4a7935bd1e995; /* of MurmurHash64A */

uint64_t mixed(uint64_t value) { return value ^ value >> 47; }

} // namespace

size_t _Hash_bytes(const void *data, size_t length, size_t seed) {
  const auto *at = static_cast<const unsigned char *>(data);
  uint64_t hash = seed ^ length * Factor;
  for (const auto *end = at + (length & ~size_t{7}); at != end; at += 8) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    hash = (hash ^ mixed(word * Factor) * Factor) * Factor;
  }
  if (length & 7) {
    uint64_t rest = 0;
    for (size_t i = length & 7; i-- > 0;)
      rest = rest << 8 | at[i];
    hash = (hash ^ rest) * Factor;
  }
  return mixed(mixed(hash) * Factor);
}

size_t _Fnv_hash_bytes(const void *data, size_t length, size_t hash) {
  /* As `char` is signed or not. */
  for (const auto *at = static_cast<const char *>(data); length > 0; at++, length--)
    hash = (hash ^ static_cast<size_t>(*at)) * 0x100000001b3;
  return hash;
}

} // namespace std
