// Vector code written by hand: each lane that the machine touches is recorded with its width, at the place and under the
// mask that the program names. The program keeps its own account.
// REQUIRES: avx2
// RUN: %memlode-c -O2 -mavx2 -I%S/../Inputs -c %s -o %t.o -Rpass-missed=memlode 2>&1 | %FileCheck %s --allow-empty --implicit-check-not="this intrinsic touches"
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=a %t > %t.txt && %python %S/../Inputs/own_account.py %t.txt
// RUN: env MEMLODE_MODE=both %memlode-c -O0 -mavx2 -I%S/../Inputs -c %s -o %t.both.o
// RUN: %link %t.both.o -o %t.both && %t.both 2>&1 | %FileCheck %s --check-prefix=AGREE
// RUN: %memlode-c -O2 -march=skylake-avx512 -I%S/../Inputs -c %s -o %t.512.o -Rpass-missed=memlode 2>&1 | %FileCheck %s --allow-empty --implicit-check-not="this intrinsic touches"
// RUN: %if avx512 %{ %link %t.512.o -o %t.512 && env MEMLODE_TEST_PRINT=a %t.512 > %t.512.txt && %python %S/../Inputs/own_account.py %t.512.txt %}
// CHECK-NOT: touches memory that is not
#include "own_account.h"

#include <immintrin.h>

#define BY_HAND __attribute__((noinline))

int Table[4096];
double Wide[512];
char Bytes[64] __attribute__((aligned(64)));
volatile int Sink;

// Masks and indices come from the caller in registers: what these functions touch is what they are about.
BY_HAND static int by_hand_gather(__m256i at) { return _mm256_extract_epi32(_mm256_i32gather_epi32(Table, at, 4), 0); }
BY_HAND static int by_hand_gather_some(__m256i at, __m256i mask) {
  return _mm256_extract_epi32(_mm256_mask_i32gather_epi32(at, Table + 64, at, mask, 4), 1);
}
BY_HAND static double by_hand_gather_wide(__m128i at) {
  return _mm_cvtsd_f64(_mm_i32gather_pd(Wide, at, 8));
}
BY_HAND static int by_hand_gather_far(__m128i at) { return _mm_extract_epi32(_mm_i64gather_epi32(Table, at, 2), 1); }
BY_HAND static float by_hand_maskload(__m256i mask) {
  return _mm256_cvtss_f32(_mm256_maskload_ps((float *)Table + 8, mask));
}
BY_HAND static void by_hand_maskstore(__m128i mask, __m128i what) {
  _mm_maskstore_epi64((long long *)Wide + 3, mask, what);
}
BY_HAND static void by_hand_bytes(__m128i mask, __m128i what) { _mm_maskmoveu_si128(what, mask, Bytes + 5); }
BY_HAND static int by_hand_unaligned(void) {
  return _mm256_extract_epi32(_mm256_lddqu_si256((__m256i *)(Bytes + 1)), 2) +
         _mm_extract_epi32(_mm_lddqu_si128((__m128i *)(Bytes + 3)), 1);
}
BY_HAND static void by_hand_past(__m256i what) {
  _mm256_stream_si256((__m256i *)Bytes, what);
  _mm_stream_si64((long long *)Bytes + 4, 7);
}
static void lanes(const char *kind, unsigned bytes, const void *base, const int *at, int scale, unsigned count,
                           unsigned mask) {
  for (unsigned i = 0; i < count; i++)
    if (mask >> i & 1)
      own(kind, bytes, (const char *)base + (long)at[i] * scale);
}

#ifdef __AVX512F__
BY_HAND static int by_hand_gather_512(__m512i at, __mmask16 mask) {
  return _mm512_reduce_add_epi32(_mm512_mask_i32gather_epi32(at, mask, at, Table, 4));
}
BY_HAND static void by_hand_scatter(__m256i at, __mmask8 mask, __m256i what) {
  _mm256_mask_i32scatter_epi32(Table + 7, mask, at, what, 8);
}
BY_HAND static void by_hand_scatter_far(__m512i at, __m512d what) { _mm512_i64scatter_pd(Wide, at, what, 8); }
BY_HAND static void by_hand_narrow(__m512i what, __mmask16 mask) { _mm512_mask_cvtepi32_storeu_epi8(Bytes, mask, what); }
BY_HAND static void by_hand_narrow_some(__m256i what, __mmask8 mask) {
  _mm256_mask_cvtsepi64_storeu_epi16(Bytes + 1, mask, what);
}
BY_HAND static void by_hand_store_some(__m512i what, __mmask16 mask) { _mm512_mask_storeu_epi32(Table, mask, what); }

static const int More[16] = {9, 1, 900, 3, 77, 5, 4000, 7, 8, 8, 10, 11, 12, 13, 14, 0};
static const long long Far[8] = {1, 3, 500, 7, 0, 11, 2, 9};
static void wide(void) {
  lanes("load", 4, Table, More, 4, 16, 0xa5c3);
  Sink += by_hand_gather_512(_mm512_loadu_si512(More), 0xa5c3);
  lanes("store", 4, Table + 7, More, 8, 8, 0x95);
  by_hand_scatter(_mm256_loadu_si256((void *)More), 0x95, _mm256_set1_epi32(3));
  for (int i = 0; i < 8; i++)
    own("store", 8, Wide + Far[i]);
  by_hand_scatter_far(_mm512_loadu_si512(Far), _mm512_set1_pd(2));
  for (int i = 0; i < 16; i++)
    if (0x1234 >> i & 1)
      own("store", 1, Bytes + i);
  by_hand_narrow(_mm512_set1_epi32(4), 0x1234);
  for (int i = 0; i < 4; i++)
    if (0xfa >> i & 1)
      own("store", 2, Bytes + 1 + 2 * i);
  by_hand_narrow_some(_mm256_set1_epi64x(4), 0xfa);
  for (int i = 0; i < 16; i++)
    if (0x8001 >> i & 1)
      own("store", 4, Table + i);
  by_hand_store_some(_mm512_set1_epi32(5), 0x8001);
}
#else
static void wide(void) {}
#endif

// AGREE: {{[1-9][0-9]*}} accesses agree
int main(void) {
  static const int At[8] = {1, 70, 3, 1000, 3, 0, 2047, 12}, Signs[8] = {-1, 0, 1 << 31, 0x7fffffff, -5, 0, 0, -1};
  static const long long FarAt[2] = {5, 600}, FarSigns[2] = {0, -1};
  const __m256i at = _mm256_loadu_si256((void *)At), signs = _mm256_loadu_si256((void *)Signs);
  const __m128i far = _mm_loadu_si128((void *)FarAt), farSigns = _mm_loadu_si128((void *)FarSigns);
  lanes("load", 4, Table, At, 4, 8, 0xff);
  Sink += by_hand_gather(at);
  lanes("load", 4, Table + 64, At, 4, 8, 0x95);
  Sink += by_hand_gather_some(at, signs);
  lanes("load", 8, Wide, At, 8, 2, 3);
  Sink += (int)by_hand_gather_wide(_mm256_castsi256_si128(at));
  for (int i = 0; i < 2; i++)
    own("load", 4, (char *)Table + 2 * FarAt[i]);
  Sink += by_hand_gather_far(far);
  for (int i = 0; i < 8; i++)
    if (Signs[i] < 0)
      own("load", 4, Table + 8 + i);
  Sink += (int)by_hand_maskload(signs);
  own("store", 8, Wide + 4);
  by_hand_maskstore(farSigns, far);
  static const signed char ByteSigns[16] = {-1, 1, -128, 127, 0, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, -1};
  for (int i = 0; i < 16; i++)
    if (ByteSigns[i] < 0)
      own("store", 1, Bytes + 5 + i);
  by_hand_bytes(_mm_loadu_si128((void *)ByteSigns), far);
  own("load", 32, Bytes + 1);
  own("load", 16, Bytes + 3);
  Sink += by_hand_unaligned();
  own("store", 32, Bytes);
  own("store", 8, Bytes + 32);
  by_hand_past(signs);
  wide();
  say_notes();
  return 0;
}
