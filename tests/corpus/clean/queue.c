// A priority queue of small jobs in an array.
#include <stdio.h>

enum { JOBS = 20000, STEPS = 100000 };
struct job {
  unsigned due, number;
};
static struct job heap[JOBS + 1];
static int count;

static void push(struct job job) {
  int at = ++count;
  for (; at > 1 && heap[at / 2].due > job.due; at /= 2)
    heap[at] = heap[at / 2];
  heap[at] = job;
}

static struct job pop(void) {
  struct job first = heap[1], last = heap[count--];
  int at = 1;
  for (int child = 2; child <= count; child = 2 * at) {
    if (child < count && heap[child + 1].due < heap[child].due)
      child++;
    if (heap[child].due >= last.due)
      break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  return first;
}

int main(void) {
  unsigned seed = 1, sum = 0;
  for (unsigned i = 0; i < JOBS - 1; i++)
    push((struct job){(seed = seed * 1103515245 + 12345) >> 8, i});
  for (int step = 0; step < STEPS; step++) {
    struct job job = pop();
    sum += job.number;
    job.due += (seed = seed * 1103515245 + 12345) >> 8;
    push(job);
  }
  printf("%u\n", sum);
  return 0;
}
