// Sorting numbers: by merging, by digits, or with a heap.
#include "truth.h"

enum { COUNT = 1 << 20, DIGITS = 256 };

static APART void merge(const uint32_t *from, uint32_t *to, size_t width) {
  for (size_t start = 0; start < COUNT; start += 2 * width) {
    size_t left = start;
    size_t right = start + width;
    for (size_t at = start; at < start + 2 * width; at++) {
      if (left < start + width && (right >= start + 2 * width || from[left] <= from[right]))
        to[at] = from[left++];
      else
        to[at] = from[right++];
    }
  }
}

static APART void by_digit(const uint32_t *from, uint32_t *to, unsigned shift) {
  uint32_t ends[DIGITS + 1] = {0};
  for (size_t i = 0; i < COUNT; i++)
    ends[(from[i] >> shift) % DIGITS + 1]++;
  for (size_t i = 0; i < DIGITS; i++)
    ends[i + 1] += ends[i];
  for (size_t i = 0; i < COUNT; i++)
    to[ends[(from[i] >> shift) % DIGITS]++] = from[i];
}

static APART void sift(uint32_t *heap, size_t at, size_t count) {
  uint32_t value = heap[at];
  for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && heap[child + 1] > heap[child])
      child++;
    if (heap[child] <= value)
      break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = value;
}

static APART void by_heap(uint32_t *heap) {
  for (size_t i = COUNT / 2; i-- > 0;)
    sift(heap, i, COUNT);
  for (size_t end = COUNT - 1; end > 0; end--) {
    uint32_t largest = heap[0];
    heap[0] = heap[end];
    heap[end] = largest;
    sift(heap, 0, end);
  }
}

int main(int argc, char **argv) {
  long rounds = truth_rounds(argc, argv);
  uint64_t seed = 5;
  uint32_t *numbers = kernel_allocate(COUNT, sizeof *numbers);
  uint32_t *spare = kernel_allocate(COUNT, sizeof *spare);
  uint64_t sum = 0;
  for (long round = 0; round < rounds; round++) {
    truth_forget();
    for (size_t i = 0; i < COUNT; i++)
      numbers[i] = kernel_random(&seed);
    if (truth_is(argv, "heap"))
      by_heap(numbers);
    else if (truth_is(argv, "digits"))
      for (unsigned shift = 0; shift < 32; shift += 16) {
        by_digit(numbers, spare, shift);
        by_digit(spare, numbers, shift + 8);
      }
    else
      for (size_t width = 1; width < COUNT; width *= 4) {
        merge(numbers, spare, width);
        merge(spare, numbers, 2 * width);
      }
    sum += numbers[COUNT / 2];
  }
  printf("%llu\n", (unsigned long long)sum);
}
