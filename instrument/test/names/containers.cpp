// Elements of standard containers have the type and the member that the source speaks of.
// RUN: %names-cxx -std=c++17 -O2 -g -fstandalone-debug %s 2>&1 | %FileCheck %s

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>
struct Point { float x, y; int id; };
struct Pool { int n; std::vector<Point *> free; };

// CHECK: index{{.*}}: containers.cpp:[[#@LINE+1]]:{{[0-9]+}} read 4 v[] : Point . y (
float index(std::vector<Point> &v, int i) { return v[i].y; }
// CHECK: range{{.*}}: containers.cpp:[[#@LINE+3]]:{{[0-9]+}} read 4 p : Point . id (
int range(std::vector<Point> &v) {
  int s = 0;
  for (auto &p : v) s += p.id;
  return s;
}
// CHECK: last{{.*}} read 8 {{.*}} : {{.*}}_Vector_base{{.*}} . _M_impl._M_finish
// CHECK: last{{.*}}: containers.cpp:[[#@LINE+1]]:{{[0-9]+}} read 4 p.free.back() : Point . id (
int last(Pool &p) { return p.free.back()->id; }
// CHECK: lookup{{.*}}: containers.cpp:[[#@LINE+3]]:{{[0-9]+}} read 4 it : std::pair<const int, Point> . second.id (
int lookup(std::map<int, Point> &m) {
  auto it = m.find(3);
  return it->second.id;
}
// CHECK: hashed{{.*}}: containers.cpp:[[#@LINE+1]]:{{[0-9]+}} read 4 m[] : int . - (
int hashed(std::unordered_map<long, int> &m) { return m[4]; }
// CHECK: owned{{.*}}: containers.cpp:[[#@LINE+1]]:{{[0-9]+}} read 4 p : Point . x (
float owned(std::unique_ptr<Point> &p) { return p->x; }
