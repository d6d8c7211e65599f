// What clang keeps of a parallel loop, its bounds and its stride, goes by one name; the program's variables by theirs.
// RUN: %names-c -O1 -g -fopenmp %s 2>&1 | %FileCheck %s

// CHECK-NOT: {{.omp.(lb|ub|stride|is_last)|.global_tid.}}
// CHECK: omp_outlined: openmp.c:{{[0-9]+}}:{{[0-9]+~?}} write {{[48]}} .omp :
// CHECK: omp_outlined: openmp.c:{{[0-9]+}}:{{[0-9]+~?}} read 8 data : long . -
// CHECK-NOT: {{.omp.(lb|ub|stride|is_last)|.global_tid.}}
long total(const long *data, long count) {
  long sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (long i = 0; i < count; i++)
    sum += data[i];
  return sum;
}
