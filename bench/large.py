"""Large files to compile: large.py SHAPE [N] prints a C program; `record.py` measures how long each takes.

What generators write, and people who unroll by hand: one function of thousands of cases, calls, loops or vector
operations. What a compiler does to a function grows faster than the function, so these are where the pass might take
minutes; CompileCost.h of the pass is fitted to them. Each runs, and prints a number that depends on what it did.
"""

import sys

HEAD = """\
#include <stdint.h>
#include <stdio.h>
long data[4096], registers[64];
uint16_t code[4096];
__attribute__((noinline)) long helper(long *place, long number) { return *place += number; }
"""


def switch(cases, calls):
    """An interpreter of many opcodes, each a few accesses, or a call."""
    kinds = [
        "registers[{a}] = registers[{b}] + data[registers[{c}] & 1023];",
        "data[registers[{a}] & 1023] ^= registers[{b}] * {odd};",
        "sum += registers[{a}] - data[{k} & 1023]; registers[{b}] = sum;",
        "if (registers[{a}] > registers[{b}]) data[{k} & 1023] = registers[{c}]++;",
    ]
    if calls:
        kinds = [
            "registers[{a}] = helper(&registers[{b}], {k});",
            "if (registers[{a}] & 1) sum ^= helper(&data[{k} & 1023], sum);",
            "data[registers[{c}] & 1023] = sum; helper(&sum, {k});",
        ]
    yield HEAD + "__attribute__((noinline)) static long run(long steps) {\n  long sum = 0;"
    yield "  for (long i = 0; i < steps; ++i)\n    switch (code[i]) {"
    for k in range(cases):
        a, b, c = k * 7 % 64, k * 11 % 64, k * 13 % 64
        yield f"    case {k}: " + kinds[k % len(kinds)].format(a=a, b=b, c=c, k=k, odd=2 * k + 1) + " break;"
    yield "    }\n  return sum;\n}"
    yield f"int main(void) {{\n  for (long i = 0; i < 4096; ++i)\n    code[i] = (uint16_t)(i * 7919 % {cases});"
    yield '  printf("%lx\\n", run(4096));\n}'


def calls(count, functions=1):
    """Calls one behind the other, as of a program that registers what it has, in one function or in several."""
    yield HEAD
    for f in range(functions):
        yield f"__attribute__((noinline)) static void begin{f}(long *from) {{"
        for k in range(f, count, functions):
            yield f"  helper(&data[{k % 4000}], from[{k % 60}]);"
            yield f"  if (data[{k % 4000}] & 1) data[{k % 4000 + 1}] = (int)from[{(k + 2) % 60}];"
        yield "}"
    yield "int main(void) {\n  for (long i = 0; i < 64; ++i)\n    registers[i] = i * 3;"
    yield "\n".join(f"  begin{f}(registers);" for f in range(functions))
    yield '  printf("%lx\\n", data[1] ^ data[2] ^ data[77]);\n}'


def loops(count):
    """Loops in loops, one behind the other."""
    yield HEAD + "__attribute__((noinline)) static void run(long *a, uint16_t *b, long **rows) {"
    for k in range(count):
        yield f"  for (long i = 0; i < a[{k}] % 8; ++i) {{"
        yield f"    long *row = rows[(i + {k}) & 7];"
        yield f"    for (long j = 0; row[j] > {k % 9}; ++j)\n      a[(b[j] + {k}) & 4095] += row[j + {k % 50}];\n  }}"
    yield "}\nint main(void) {\n  static long values[8][4096];\n  long *rows[8];"
    yield "  for (long i = 0; i < 8; ++i) {\n    rows[i] = values[i];\n    for (long j = 0; j < 20; ++j)"
    yield "      values[i][j] = 20 - j;\n  }\n  for (long i = 0; i < 4096; ++i)\n    data[i] = i * 5;"
    yield '  run(data, code, rows);\n  printf("%lx\\n", data[7] ^ data[4000]);\n}'


def vectors(operations, functions=40):
    """Kernels of unrolled gathers, loads and stores of vectors."""
    yield HEAD + "#include <immintrin.h>"
    for f in range(functions):
        yield f'__attribute__((noinline, target("avx2,fma"))) static void kernel{f}(const double *restrict a,'
        yield "    const int *restrict index, double *restrict out, long n) {"
        yield "  for (long i = 0; i < n; i += 4) {\n    __m256d s = _mm256_setzero_pd();"
        for k in range(operations // functions):
            yield [
                f"    s = _mm256_fmadd_pd(_mm256_i32gather_pd(a + {k * 16}, _mm_loadu_si128("
                f"(const __m128i *)(index + i + {k * 4})), 8), _mm256_loadu_pd(a + i + {k * 8}), s);",
                f"    s = _mm256_fmadd_pd(_mm256_loadu_pd(a + i + {k * 8}), s, _mm256_loadu_pd(a + 2 * i + {k * 4}));",
                f"    _mm256_storeu_pd(out + i + {k * 4}, s);",
            ][k % 3]
        yield "    _mm256_storeu_pd(out + i, s);\n  }\n}"
    yield "int main(void) {\n  static double a[1 << 16], out[1 << 16];\n  static int index[1 << 16];"
    yield '  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {'
    yield "\n".join(f"    kernel{f}(a, index, out, 64);" for f in range(functions))
    yield '  }\n  printf("%g\\n", out[5]);\n}'


# How many of what it is made of a shape has for the benchmark.
SHAPES = {
    "switch": (2000, lambda n: switch(n, calls=False)),
    "dispatch": (2000, lambda n: switch(n, calls=True)),
    "calls": (3000, calls),
    "functions": (3000, lambda n: calls(n, functions=100)),
    "loops": (400, loops),
    "vectors": (12000, vectors),
}


def text(shape, count=None):
    """The program of a shape."""
    usual, lines = SHAPES[shape]
    return "\n".join(lines(count or usual)) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None))
