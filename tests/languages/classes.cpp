// What C++ data is made of; see shapes.c for what the comments say. Lines of the library that are inlined
// into a line of ours count as that line's.
// clang-format off: an access and its names stand in one line
#include <cstdio>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>
#define APART __attribute__((noinline))

struct Point {
  float x, y;
  int id;
};
struct Base {
  virtual ~Base() = default;
  virtual long area() const { return wide; } //= load this : Base.wide
  long wide = 3;
};
struct Named {
  std::string name = "a name that is long enough for the heap";
  int uses = 0;
};
struct Shape : Base, Named {
  long area() const override { return wide * tall; } //= load this : Base.wide; load this : Shape.tall
  long tall = 4;
};
struct Root {
  long common = 1;
};
struct Left : virtual Root {
  long left = 2;
};
struct Right : virtual Root {
  long right = 3;
};
struct Both : Left, Right {
  long both = 4;
};
template <class T, int N> struct Ring {
  T items[N];
  int head = 0;
  T &front() { return items[head]; } //= load this : Ring<Point, 8>.head
};
struct Pool {
  std::vector<Point> points;
  std::unique_ptr<Shape> shape;
};

APART float item(std::vector<Point> &v, int i) { return v[i].y; } //= load v[] : Point.y
APART long each(std::vector<Point> &v) {
  long sum = 0;
  for (auto &p : v)
    sum += p.id; //= load p : Point.id
  return sum;
}
APART long upcast(Shape *s) { return s->uses; }     //= load s : Named.uses
APART long area(Base *b) { return b->area(); }      //= load b : Base._vptr
APART long base(Both *b) { return b->both + b->common; } //= load b : Both.both; load b : Root.common
APART int head(Ring<Point, 8> &r) { return r.front().id; } //= load r.front() : Point.id
APART float found(std::map<int, Point> &m) { return m.find(3)->second.x; } //= load - : std::pair<const int, Point>.second.x, chased
APART float at(std::map<int, Point> &m) { return m.at(2).y; }     //= load m[] : Point.y
APART int hashed(std::unordered_map<long, Point> &m) { return m[4].id; } //= load m[] : Point.id
APART long walk(std::unordered_map<long, Point> &m) {
  long sum = 0;
  for (auto &[key, value] : m)
    sum += key + value.id; //= load key : long, chased; load value : Point.id, chased
  return sum;
}
APART int queued(std::deque<Point> &d, int i) { return d[i].id; } //= load d[] : Point.id
APART int listed(std::list<Point> &l) {
  int sum = 0;
  for (Point &p : l)
    sum += p.id; //= load p : Point.id, chased
  return sum;
}
APART int character(const std::string &s, int i) { return s[i]; } //= load s[] : char
APART long owned(std::unique_ptr<Shape> &s) { return s->tall; }   //= load s : Shape.tall, loaded
APART long shared(std::shared_ptr<Shape> &s) { return s->tall; }  //= load s._M_ptr : Shape.tall
APART long nested(Pool *p) { return p->shape->tall + p->points[2].id; } //= load p->shape : Shape.tall; load p->points[] : Point.id
APART double bound(std::pair<int, double> *p) {
  auto &[first, second] = *p;
  return first + second; //= load p : std::pair<int, double>.first; load p : std::pair<int, double>.second
}
APART long captured(Point *points, int n) {
  long sum = 0;
  auto add = [&sum, points](int i) { sum += points[i].id; }; //= load points : Point.id
  for (int i = 0; i < n; i++)
    add(i);
  return sum;
}
struct Visitor {
  long total = 0;
  APART void visit(const Point &p) { total += p.id; } //= load this : Visitor.total; store this : Visitor.total; load p : Point.id
};
APART long keys(std::set<long> &s) {
  long sum = 0;
  for (long key : s) //= load __begin1 : long
    sum += key;
  return sum;
}
APART Point *make(int n) { return new Point[n]; }   //= alloc - : Point
APART Shape *shape() { return new Shape; }          //= alloc - : Shape
APART std::unique_ptr<Shape> unique() { return std::make_unique<Shape>(); } //= alloc - : Shape

int main() {
  Pool pool{std::vector<Point>(8, Point{1, 2, 3}), unique()}; //= alloc - : Point
  std::map<int, Point> map;
  std::unordered_map<long, Point> hash;
  std::deque<Point> deque;
  std::list<Point> list;
  std::set<long> set;
  for (int i = 0; i < 9; i++) {
    map[i] = {float(i), 1, i};
    hash[i] = {1, 2, i};
    deque.push_back({1, 2, i});
    list.push_back({1, 2, i});
    set.insert(i);
  }
  Both both;
  Ring<Point, 8> ring{};
  Visitor visitor;
  visitor.visit(pool.points[1]);
  std::pair<int, double> pair{1, 2.5};
  std::string text = "some text";
  std::shared_ptr<Shape> shared_shape = std::make_shared<Shape>();
  Shape *plain = shape();
  Point *array = make(5);
  array[0] = array[1] = array[2] = pool.points[3];
  std::printf("%g %ld %ld %ld %ld %d %g %g %d %ld\n", item(pool.points, 1), each(pool.points), upcast(plain),
              area(plain), base(&both), head(ring), found(map), at(map), hashed(hash), walk(hash));
  std::printf("%d %d %d %ld %ld %ld %g %ld %ld %ld %ld\n", queued(deque, 2), listed(list), character(text, 1),
              owned(pool.shape), shared(shared_shape), nested(&pool), bound(&pair), captured(array, 3), keys(set),
              visitor.total, area(new Base));
  delete plain;
  delete[] array;
}
