/* Opened by own_heap.c: accesses on both sides of the first look at the thread's own data, whose address is
 * found by a call that allocates. */
__thread long of_the_thread[3000] = {1};
long work(long *a);
long work(long *a) {
  a[0] += 1;
  a[1] += a[0];
  a[2] += a[1];
  of_the_thread[7] += a[2];
  a[3] += of_the_thread[7];
  a[4] += a[3];
  return a[4];
}
