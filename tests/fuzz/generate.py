"""Random C and C++ programs that terminate, have defined behaviour, and say at the end what they computed.

Every value is computed as u64, whose arithmetic wraps; indices are masked to the size of the array, pointers always
point at something, and what may repeat costs fuel. Data is global, and a thread's own in a program with threads, so
that each thread's accesses are the same in every run.
"""

import random

from program import Function, Program
from statements import Statements
from surroundings import Surroundings

INTEGERS = ["u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64"]
SHARED_HEADER = """\
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifdef __cplusplus
#include <new>
extern "C" {{
#endif
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __cplusplus
}}
#endif
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef u32 v8 __attribute__((vector_size(32)));
#define MINE {mine}
#define NOINLINE __attribute__((noinline))
/* Says where variables lie, where somebody wants to know. */
#ifdef __cplusplus
extern "C"
#endif
void owned(void) __attribute__((weak));
"""
CXX_HEADER = """\
struct Error { u64 code; };
struct Oops : Error { u64 more[3]; };
/* Counts its ends, so that unwinding shows. */
struct Guard {
  u64 *place;
  explicit Guard(u64 *p) : place(p) { *place += 3; }
  ~Guard() { *place = *place * 5 + 1; }
};
struct Shape {
  u64 size;
  explicit Shape(u64 s) : size(s) {}
  virtual ~Shape() { size = 0; }
  virtual u64 area(u64 k) { return size * k; }
};
struct Square : Shape {
  u64 side[2];
  explicit Square(u64 s) : Shape(s), side{s, s + 1} {}
  u64 area(u64 k) override { return side[k & 1] * size; }
};
template <typename T> inline u64 total(const T *p, u32 n) {
  u64 sum = 0;
  for (u32 i = 0; i < n; ++i)
    sum += (u64)p[i];
  return sum;
}
"""
STATIC_OBJECT = """\
static struct Static {
  u64 kept[4];
  Static() { for (u32 i = 0; i < 4; ++i) kept[i] = shared[i] + i; }
  ~Static() { for (u32 i = 0; i < 4; ++i) shared[i] += (u32)kept[i]; }
} object;
"""


class Struct:
    """`scalars` are paths to things that hold a number: (path with {} for each index, sizes of the indices, type)."""

    def __init__(self, name):
        self.name, self.lines, self.scalars = name, [], []


class Generator(Statements):
    def __init__(self, seed):
        self.seed, self.random = seed, random.Random(seed)
        r = self.random
        self.cxx = r.random() < 0.4
        self.threads = r.choice([0, 0, 0, 2, 3, 5])
        self.units = r.choice([1, 1, 2, 2, 3])
        self.jumps = not self.cxx and r.random() < 0.5
        self.structs, self.arrays, self.scalars, self.objects, self.pointers = [], [], [], [], []
        self.names = 0
        self.count = r.randint(3, 14)

    def name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    # ---- data ----

    def struct(self):
        r = self.random
        s = Struct(self.name("S"))
        for _ in range(r.randint(1, 7)):
            self.field(s)
        for _ in range(r.randint(0, 1)):
            s.lines.append(f"struct {s.name} *next;")
        if not s.scalars:
            s.lines.append("u32 only;")
            s.scalars.append(("only", [], "u32"))
        packed = " __attribute__((packed))" if r.random() < 0.1 else ""
        aligned = " __attribute__((aligned(64)))" if r.random() < 0.1 else ""
        body = "\n".join("  " + line for line in s.lines)
        self.structs.append(s)
        return f"struct {s.name} {{\n{body}\n}}{packed or aligned};\n"

    def field(self, s):
        r = self.random
        f = self.name("f")
        what = r.random()
        if what < 0.35:
            kind = r.choice(INTEGERS)
            s.lines.append(f"{kind} {f};")
            s.scalars.append((f, [], kind))
        elif what < 0.5:
            for _ in range(r.randint(1, 4)):
                f, kind = self.name("f"), r.choice(["u8", "u32", "u32", "i32", "u64"])
                width = r.randint(1, {"u8": 8, "u32": 32, "i32": 32, "u64": 64}[kind])
                s.lines.append(f"{kind} {f} : {width};")
                s.scalars.append((f, [], kind))
        elif what < 0.7:
            kind, size = r.choice(INTEGERS + ["double", "float"]), r.choice([2, 4, 8, 32])
            s.lines.append(f"{kind} {f}[{size}];")
            s.scalars.append((f + "[{}]", [size], kind))
        elif what < 0.8 and self.structs:
            inner, size = r.choice(self.structs), r.choice([0, 0, 2, 4])
            s.lines.append(f"struct {inner.name} {f}{f'[{size}]' if size else ''};")
            for path, sizes, kind in inner.scalars:
                s.scalars.append((f"{f}{'[{}]' if size else ''}.{path}", ([size] if size else []) + sizes, kind))
        elif what < 0.9:
            a, b = self.name("f"), self.name("f")
            s.lines.append(f"union {{ u64 {a}; u16 {b}[4]; }} {f};")
            s.scalars += [(f"{f}.{a}", [], "u64"), (f"{f}.{b}[{{}}]", [4], "u16")]
        else:
            kind = r.choice(["double", "float", "unsigned __int128", "long double", "unsigned _BitInt(37)", "_Bool"])
            if kind == "_Bool" and self.cxx:
                kind = "bool"
            s.lines.append(f"{kind} {f};")
            s.scalars.append((f, [], kind))

    def variables(self):
        """Declarations for the header and definitions for the first unit."""
        r = self.random
        found = []
        for _ in range(r.randint(2, 6)):
            n, kind = self.name("g"), r.choice(INTEGERS + ["volatile u32", "double"])
            found.append((kind, n, ""))
            self.scalars.append((n, kind))
        for _ in range(r.randint(3, 7)):
            n, kind, size = self.name("a"), r.choice(["u32", "u64", *INTEGERS, "float", "double"]), 1 << r.randint(4, 9)
            found.append((kind, n, f"[{size}]"))
            self.arrays.append((n, kind, size))
        for s in self.structs:
            n, size = self.name("o"), r.choice([1, 4, 16, 64])
            found.append((f"struct {s.name}", n, f"[{size}]"))
            self.objects.append((n, s, size))
            p = self.name("p")
            found.append((f"struct {s.name} *", p, ""))
            self.pointers.append((p, s, n, size))
        n = self.name("h")
        found.append(("u64 *", n, ""))
        self.heap = n
        found += [("i64", "fuel", ""), ("u64", "result", ""), ("jmp_buf *", "back", ""), ("char", "text", "[256]")]
        declared = "".join(f"extern MINE {kind} {n}{size};\n" for kind, n, size in found)
        defined = "".join(f"MINE {kind} {n}{size};\n" for kind, n, size in found)
        kind = "local" if self.threads else "global"
        self.variable_names = [(kind, n) for _, n, _ in found] + [("global", "shared")]
        return declared + "extern u32 shared[16];\n", defined + "u32 shared[16];\n"

    # ---- functions ----

    def program(self):
        r = self.random
        header = SHARED_HEADER.format(mine="__thread" if self.threads else "") + (CXX_HEADER if self.cxx else "")
        header += "".join(self.struct() for _ in range(r.randint(2, 4)))
        declared, defined = self.variables()
        header += declared
        functions = []
        header += "typedef u64 (*Function)(u64, u64);\nextern const Function table[8];\n"
        for index in range(self.count):
            header += f"u64 fn{index}(u64 a, u64 b);\n"
            functions.append(self.function(index))
        header += self.helpers(functions)
        around = Surroundings(self.seed, self.cxx, self.threads, self.units)
        header += around.header
        functions += around.functions
        functions += self.setup(around)
        targets = [r.randrange(self.count) for _ in range(8)]
        defined += around.data + (STATIC_OBJECT if self.cxx else "")
        defined += f"extern const Function table[8] = {{{', '.join(f'fn{t}' for t in targets)}}};\n"
        return Program("c++" if self.cxx else "c", header, defined, functions, self.units,
                       self.variable_names + around.variables, around)

    def function(self, index):
        r = self.random
        self.index, self.local_arrays, self.depth = index, [], 0
        self.local = ["x0", "x1", "x2"]
        self.writable = list(self.local)
        unit = r.randrange(self.units)
        attribute = r.choice(["", "", "", "NOINLINE ", "NOINLINE ", "__attribute__((cold)) ",
                              "__attribute__((flatten)) "])
        start = ["if (--fuel < 0) return a + b;", "u64 x0 = a, x1 = b, x2 = a ^ b;"]
        for _ in range(r.randint(0, 2)):
            n, kind, size = self.name("l"), r.choice(["u32", "u64", "u8", "i32"]), r.choice([4, 16, 64])
            start.append(f"{kind} {n}[{size}] = {{(({kind})a)}};")
            self.local_arrays.append((n, kind, size))
        body = self.block(r.randint(2, 7), 2)
        return Function(f"{attribute}u64 fn{index}(u64 a, u64 b)", start, body, [self.ending()], unit)

    def setup(self, around):
        """What starts everything and sums up, with what is `around` it."""
        r = self.random
        begin = ["fuel = %d;" % r.choice([20, 100, 400, 1500]), f"{self.heap} = (u64 *)calloc(64, 8);"]
        for n, kind, size in self.arrays:
            first = f"({kind})((i * {r.choice([1, 3, 7, 40503])}) & 1023)"
            begin.append(f"for (u32 i = 0; i < {size}; ++i) {n}[i] = {first};")
        for p, s, n, size in self.pointers:
            begin.append(f"{p} = &{n}[{r.randrange(size)}];")
            if any("*next" in line for line in s.lines):
                begin.append(f"for (u32 i = 0; i < {size}; ++i) {n}[i].next = &{n}[(i * 5 + 1) & {size - 1}];")
        calls = [f"result = result * 31 + fn{r.randrange(min(3, self.count))}({r.randrange(1000)}, seed);"
                 for _ in range(3)]
        end = [f"for (u32 i = 0; i < {size}; ++i) result = result * 31 + (u64){n}[i];" for n, _, size in self.arrays]
        end += [f"result = result * 31 + (u64){n};" for n, _ in self.scalars]
        end += around.each
        end += [f"free({self.heap});", *around.last, "return (void *)result;"]
        if self.cxx:
            calls = ["try {", *calls, "} catch (const Error &e) { result += e.code; }",
                     "catch (int e) { result ^= (u64)e; }"]
        body = ["if (owned) owned();", "u64 seed = (u64)argument;", *begin, *calls]
        run = Function("NOINLINE void *run(void *argument)", body, [], end, 0)
        main = [*around.first, 'printf("%llx\\n", (u64)run((void *)7));']
        if self.threads:
            main.append(f"pthread_t t[{self.threads}];\nvoid *out;")
            main.append(f"for (u32 i = 0; i < {self.threads}; ++i) pthread_create(&t[i], 0, run, (void *)(u64)i);")
            main.append(f'for (u32 i = 0; i < {self.threads}; ++i) {{ pthread_join(t[i], &out); '
                        'printf("%llx\\n", (u64)out); }')
        main.append('u32 sum = 0;\nfor (u32 i = 0; i < 16; ++i) sum += shared[i];\nprintf("%x\\n", sum);')
        main += around.final
        return [run, Function("int main(void)", main, [], [f"return {r.choice([0, 0, 3])};"], 0)]


def generate(seed):
    """The program of a seed."""
    return Generator(seed).program()
