// What C++ may make a type of: bases, virtual ones too, tables, bit-fields, unions, what is packed or
// aligned.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Keeps its argument.
static void *kept;
__attribute__((noinline)) static void keep(void *what) { kept = what; }

namespace shapes {

// What is marked is expected to be said of the member, or of the record.
struct Watched {
  int plain;
  int given; //= escapes
  long kept; //= escapes
  struct Inner {
    short low;
    short high; //= escapes
  } inner;      //= escapes
  std::string text;
  char buffer[8]; //= escapes
};

struct Written { //= cast
  int first;
  int second;
};

struct Read { //= cast
  long both;
};

struct Empty {};

struct Plain : Empty {
  char tag;
  double weight;
  short pair[2];
};

struct __attribute__((packed)) Packed {
  char first;
  long second;
  short third;
};

struct alignas(64) Line {
  int value;
};

struct Bits {
  unsigned low : 3;
  unsigned : 2;
  unsigned middle : 11;
  unsigned : 0;
  signed high : 20;
  bool flag : 1;
};

struct Shape {
  virtual ~Shape() = default;
  virtual double area() const { return 0; }
  int id = 1;
};

struct Named {
  std::string name = "none";
};

struct Square final : Shape, Named {
  double area() const override { return side * side; }
  double side = 2;
  struct {
    float x, y;
  } at = {1, 2};
};

struct Left : virtual Shape {
  int left = 3;
};

struct Right : virtual Shape {
  char right = 4;
};

struct Both : Left, Right {
  long both = 5;
};

union Any {
  long number;
  double real;
  Plain plain;
};

template <typename T, int N> struct Ring {
  std::array<T, N> slots{};
  T *head = slots.data();
  int Shape::*member = nullptr;
  double (Shape::*method)() const = nullptr;
  union {
    Any any;
    char raw[40];
  };
  Ring() noexcept : raw{} {}
};

} // namespace shapes

using namespace shapes;

static Packed packed[3];
Ring<Plain, 4> ring;

__attribute__((noinline)) static long look(Watched *watched, Written *written) {
  static long *last;
  watched->plain = 1;
  keep(&watched->given);
  last = &watched->kept;
  keep(&watched->inner.high);
  keep(watched->buffer);
  watched->text.append("x");
  watched->inner.low += static_cast<short>(*last);
  written->first = 3;
  written->second = watched->plain;
  return ((Read *)written)->both;
}

int main(int argc, char **) {
  Written written{};
  std::printf("%ld\n", look(new Watched(), &written));
  auto *line = new Line[2];
  auto *bits = static_cast<Bits *>(calloc(2, sizeof(Bits)));
  auto square = std::make_unique<Square>();
  auto *both = new Both;
  std::map<int, Plain> plains;
  std::vector<std::optional<Any>> any(3);
  plains[argc].weight = argc;
  line[1].value = argc;
  bits[1].middle = static_cast<unsigned>(argc);
  both->both += both->left + both->right + both->id;
  std::optional<Any> &one = any[1];
  one = Any{7};
  packed[argc].second = argc;
  ring.head[argc].pair[1] = 9;
  square->at.x += static_cast<float>(square->id);
  std::printf("%g %d %u %ld %ld %ld %d %g\n", plains[argc].weight, line[1].value, bits[1].middle, both->both,
              one->number, packed[argc].second, ring.slots[1].pair[1], square->at.x + square->area());
  delete[] line;
  delete both;
  free(bits);
}
