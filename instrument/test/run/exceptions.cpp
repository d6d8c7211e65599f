// Exceptions thrown through recorded frames: the stream agrees with the calls, and the shadow stack ends empty.
// RUN: env MEMLODE_MODE=both %memlode-cxx -O0 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>%t.err | %FileCheck %s && %FileCheck %s --check-prefix=AGREE --input-file=%t.err
// RUN: env MEMLODE_MODE=both %memlode-cxx -O2 -c %s -o %t.o
// RUN: %link %t.o -o %t && %t 2>%t.err | %FileCheck %s && %FileCheck %s --check-prefix=AGREE --input-file=%t.err
// RUN: %memlode-cxx -O1 -fno-inline -c %s -o %t.o
// RUN: %link %t.o -o %t && env MEMLODE_TEST_PRINT=1 %t | %FileCheck %s --check-prefix=STREAM

#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

struct Guard {
  int &Count;
  explicit Guard(int &C) : Count(C) { ++Count; }
  ~Guard() { --Count; }
};

static int Open;

static int deep(int N) {
  Guard G(Open);
  if (N == 0)
    throw std::runtime_error("bottom");
  return deep(N - 1) + 1;
}

static int caught(int N) {
  try {
    return deep(N);
  } catch (const std::exception &E) {
    return -N;
  }
}

int main() {
  std::map<std::string, std::vector<int>> M;
  for (int I = 0; I < 50; ++I)
    M["key" + std::to_string(I % 7)].push_back(caught(I % 5));
  long Sum = 0;
  for (auto &[Key, Values] : M)
    for (int V : Values)
      Sum += V;
  try {
    Sum += M.at("none").at(0);
  } catch (const std::out_of_range &) {
    Sum += 1000;
  }
  printf("sum %ld open %d\n", Sum, Open);
}

// CHECK: sum 900 open 0
// AGREE: recorder: {{[1-9][0-9]*}} accesses agree

// deep(2) unwinds three frames, and the cleanup of each is the top while it runs.
// STREAM: enter caught depth [[CAUGHT:[0-9]+]]
// STREAM: enter deep depth
// STREAM: resume deep depth
// STREAM: exit deep
// STREAM: resume caught depth [[CAUGHT]]
// STREAM: exit caught depth [[CAUGHT]]
// STREAM: exit main depth 1
