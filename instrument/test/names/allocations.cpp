// operator new: the type that is constructed, also when constructors and container helpers hold the pointer.
// RUN: %names-cxx -std=c++17 -O2 -g %s 2>&1 | %FileCheck %s

#include <map>
#include <vector>
struct Base { long b = 1; };
struct Shape : Base { Shape(int n) : n(n) {} int n; };
template <class T> struct Node { T value; Node *next; };

// CHECK: _Z5shapei: allocations.cpp:[[#@LINE+1]]:{{[0-9]+}} alloc 0 {{-|s}} : Shape . - (
Shape *shape(int n) { Shape *s = new Shape(n); return s; }
// CHECK: _Z4nodev: allocations.cpp:[[#@LINE+1]]:{{[0-9]+}} alloc 0 - : Node<long> . - (
Node<long> *node() { return new Node<long>{1, nullptr}; }
// CHECK: _Z5arrayi: allocations.cpp:[[#@LINE+1]]:{{[0-9]+}} alloc 0 {{.*}} : Shape * . - (
Shape **array(int n) { Shape **a = new Shape *[n]; return a; }
// CHECK: _Z6vectori: {{.*}} alloc 0 {{.*}} : Shape . - (
std::vector<Shape> vector(int n) { return std::vector<Shape>(n, Shape(1)); }
// CHECK: alloc 0 {{.*}} : std::_Rb_tree_node<std::pair<const int, Shape> > . - (
void map(std::map<int, Shape> &m) { m.emplace(1, Shape(2)); }
