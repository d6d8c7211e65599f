// Sorts numbers in place.
#include <stdio.h>
#include <stdlib.h>

enum { NUMBERS = 150000 };

static int by_value(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

static void sort(int *numbers, int count) {
  while (count > 16) {
    int pivot = numbers[count / 2], low = 0, high = count - 1;
    while (low <= high) {
      while (numbers[low] < pivot)
        low++;
      while (numbers[high] > pivot)
        high--;
      if (low <= high) {
        int swapped = numbers[low];
        numbers[low++] = numbers[high];
        numbers[high--] = swapped;
      }
    }
    sort(numbers + low, count - low);
    count = high + 1;
  }
  qsort(numbers, (size_t)count, sizeof *numbers, by_value);
}

int main(void) {
  int *numbers = malloc(NUMBERS * sizeof *numbers);
  if (!numbers)
    abort();
  unsigned seed = 1;
  for (int i = 0; i < NUMBERS; i++)
    numbers[i] = (int)((seed = seed * 1103515245 + 12345) >> 8);
  sort(numbers, NUMBERS);
  printf("%d %d\n", numbers[0], numbers[NUMBERS - 1]);
  free(numbers);
  return 0;
}
