// What C++ adds: bases, templates, this, references, closures, bindings, namespaces, virtual tables, thread_local.
// RUN: %names-cxx -std=c++17 -O2 -g -fstandalone-debug %s 2>&1 | %FileCheck %s

struct Base { virtual ~Base(); virtual int f(); int b; };
struct Mixin { double m; };
struct Derived : Base, Mixin { int d; struct { int x, y; } in; };

// A member of a base class belongs to the class that declares it.
// CHECK: _Z5basesP7Derived: {{.*}} read 4 d : Base . b (
// CHECK: _Z5basesP7Derived: {{.*}} read 8 d : Mixin . m (
// CHECK: _Z5basesP7Derived: {{.*}} read 4 d : Derived . in.y (
double bases(Derived *d) { return d->b + d->m + d->in.y; }

// CHECK: _Z5tableP4Base: {{.*}} read 8 b : Base . _vptr (
int table(Base *b) { return b->f(); }

template <class T, int N> struct Ring { T items[N]; Ring *next; T &at(int i) { return items[i]; } };
// CHECK: _Z4ringR4RingIlLi8EEi: {{.*}} read 8 r : Ring<long, 8> . next (
// CHECK: _Z4ringR4RingIlLi8EEi: {{.*}} read 8 {{.*}} : Ring<long, 8> . items[] (
long ring(Ring<long, 8> &r, int i) { return r.next->at(i); }

namespace geo { struct Point { float x, y; }; static Point points[16]; namespace { struct Hidden { int h; }; } }
// CHECK: _Z9qualifiedi: {{.*}} write 4 geo::points : geo::Point . y (
void qualified(int i) { geo::points[i].y = 2; }
// CHECK: _Z5probeR{{.*}} read 4 p : geo::Point . x (
float probe(geo::Point &p) { return p.x + geo::points[1].y; }
// CHECK: _Z6hiddenPv: {{.*}} read 4 p : geo::(anonymous namespace)::Hidden . h (
int hidden(void *p) { return static_cast<geo::Hidden *>(p)->h; }

struct Counter { int n; void inc(); };
// CHECK: _ZN7Counter3incEv: {{.*}} read 4 this : Counter . n (
void Counter::inc() { ++n; }

template <class F> __attribute__((noinline)) int call(F f) { return f(); }
// CHECK: _Z4bindR{{.*}} read 4 y : geo::Point . y (
// CHECK: {{.*}}callI{{.*}} read 4 a : int . - (
float bind(geo::Point &q, int &a) {
  auto &[x, y] = q;
  a = call([&a] { return a + 1; });
  return y;
}

thread_local geo::Point mine;
// CHECK: _Z5localv: {{.*}} read 4 mine : geo::Point . x (
float local() { return mine.x; }
