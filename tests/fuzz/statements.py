"""Random statements and expressions over the data that a generator has declared."""

from program import Block, Function

FLOATS = ("float", "double", "long double")


class Statements:
    """Mixed into the generator, which owns the random numbers and the names."""

    # ---- expressions: all of type u64 ----

    def place(self):
        """A place that holds a number, and its type."""
        r = self.random
        what = r.random()
        if what < 0.3:
            return r.choice(self.writable), "u64"
        if what < 0.4:
            return r.choice(self.scalars)
        if what < 0.6:
            n, kind, size = r.choice(self.arrays + self.local_arrays)
            return f"{n}[{self.index_below(size)}]", kind
        if what < 0.75:
            n, s, size = r.choice(self.objects)
            return self.path(f"{n}[{self.index_below(size)}].", s)
        if what < 0.95:
            p, s, _, _ = r.choice(self.pointers)
            hop = "next->" if any("*next" in line for line in s.lines) and r.random() < 0.4 else ""
            return self.path(f"{p}->{hop}", s)
        return f"{self.heap}[{self.index_below(64)}]", "u64"

    def path(self, start, s):
        path, sizes, kind = self.random.choice(s.scalars)
        return start + path.format(*(self.index_below(size) for size in sizes)), kind

    def index_below(self, size):
        r = self.random
        if r.random() < 0.3:
            return str(r.randrange(size))
        return f"({self.value(0)}) & {size - 1}" if r.random() < 0.5 else f"{r.choice(self.local)} & {size - 1}"

    def value(self, depth):
        r = self.random
        if depth <= 0:
            what = r.random()
            if what < 0.3:
                return f"{r.choice([0, 1, 2, 7, 255, 4096, 0x9e3779b97f4a7c15])}ull"
            if what < 0.6:
                return r.choice(self.local)
            n, kind, size = r.choice(self.arrays)
            return f"(u64){n}[{r.choice(self.local)} & {size - 1}]"
        what = r.random()
        a, b = self.value(depth - 1), self.value(depth - 1)
        if what < 0.35:
            place, _ = self.place()
            return f"(u64){place}"
        if what < 0.7:
            return f"({a} {r.choice(['+', '-', '*', '^', '&', '|'])} {b})"
        if what < 0.78:
            return f"({a} {r.choice(['<<', '>>'])} ({b} & 31))"
        if what < 0.86:
            return f"(({a}) {r.choice(['<', '==', '>='])} ({b}) ? {self.value(depth - 1)} : {self.value(depth - 1)})"
        if what < 0.92:
            return f"({a} / (({b}) | 1))"
        return self.call()

    def condition(self):
        return f"(({self.value(1)}) & {self.random.choice([1, 3, 7])}) {self.random.choice(['==', '!=', '>'])} 1"

    def call(self):
        """Mostly of a later function, so that most chains end without fuel running out."""
        r = self.random
        arguments = f"({self.value(0)}, {self.value(0)})"
        if self.index + 1 < self.count and r.random() < 0.8:
            return f"fn{r.randrange(self.index + 1, self.count)}{arguments}"
        if r.random() < 0.5:
            return f"fn{r.randrange(self.count)}{arguments}"
        return f"table[{self.value(0)} & 7]{arguments}"

    # ---- statements ----

    def block(self, count, depth):
        return [self.statement(depth) for _ in range(count)]

    def statement(self, depth):
        r = self.random
        simple = [self.assign, self.assign, self.assign, self.copy, self.call_statement, self.atomic, self.pointer,
                  self.library, self.helper, self.assembly, self.heap_block]
        nested = [self.branch, self.vectorisable, self.vectorisable, self.loop, self.do_while, self.switch, self.goto,
                  self.frame_block]
        if self.cxx:
            simple += [self.objects_of_classes, self.throw]
            nested += [self.attempt, self.attempt]
        elif self.jumps:
            simple += [self.jump]
            nested += [self.landing]
        return r.choice(nested if depth > 0 and r.random() < 0.5 else simple)(depth)

    def assign(self, _):
        r = self.random
        place, kind = self.place()
        if kind in FLOATS:
            return f"{place} = ({kind})(({self.value(2)}) & 1023);"
        bare = kind.replace("volatile ", "")
        if kind == "bool" or kind == "_Bool" or r.random() < 0.6:
            return f"{place} = ({bare})({self.value(2)});"
        return f"{place} = ({bare})((u64){place} {r.choice(['+', '^', '*', '|'])} {self.value(1)});"

    def copy(self, _):
        r = self.random
        what = r.random()
        if what < 0.4:
            n, _, size = r.choice(self.objects)
            return f"{n}[{r.randrange(size)}] = {n}[{self.index_below(size)}];"
        n, kind, size = r.choice(self.arrays)
        if what < 0.6:
            return f"memmove({n}, &{n}[{r.randrange(size // 2)}], ({self.value(1)}) & {size // 2 - 1});"
        if what < 0.8 and kind not in FLOATS:
            length = r.choice(["sizeof " + n, f"({self.value(1)}) & {size - 1}"])
            return f"memset({n}, (int)({self.value(0)} & 255), {length});"
        return f"memcpy({n}, &{n}[{size // 2}], {size // 4} * sizeof {n}[0]);"

    def call_statement(self, _):
        return f"{self.random.choice(self.writable)} += {self.call()};"

    def atomic(self, _):
        r = self.random
        if r.random() < 0.3:
            return f"__atomic_fetch_add(&shared[{r.randrange(16)}], (u32)({self.value(1)}), __ATOMIC_RELAXED);"
        found = [a for a in self.arrays if a[1] not in FLOATS]
        if not found:
            return self.assign(0)
        n, kind, size = r.choice(found)
        place = f"&{n}[{self.index_below(size)}]"
        order = r.choice(["__ATOMIC_RELAXED", "__ATOMIC_SEQ_CST"])
        what = r.random()
        if what < 0.4:
            return f"x0 += (u64)__atomic_fetch_{r.choice(['add', 'and', 'xor', 'or'])}({place}, ({kind})x1, {order});"
        if what < 0.6:
            return f"x1 ^= (u64)__atomic_exchange_n({place}, ({kind})x2, {order});"
        if what < 0.8:
            return (f"{{ {kind} old = ({kind})x0;\n  x2 += (u64)__atomic_compare_exchange_n({place}, &old, ({kind})x1, "
                    f"0, {order}, __ATOMIC_RELAXED) + (u64)old; }}")
        loaded = f"__atomic_load_n({place}, __ATOMIC_RELAXED)"
        return f"__atomic_store_n({place}, ({kind})(x0 + (u64){loaded}), __ATOMIC_RELEASE);"

    def pointer(self, _):
        p, s, n, size = self.random.choice(self.pointers)
        if any("*next" in line for line in s.lines) and self.random.random() < 0.6:
            return f"{p} = {p}->next;"
        return f"{p} = &{n}[{self.index_below(size)}];"

    def library(self, _):
        return self.random.choice([
            "memset(text, 'a' + (int)(x0 & 7), x1 & 127);\ntext[x1 & 127] = 0;\nx2 += strlen(text);",
            "x0 += (u64)(memcmp(text, text + 32, 32) == 0);",
            "strcpy(text, \"memory\");\nx1 += (u64)text[x0 & 7];",
            f"qsort({self.heap}, 64, 8, compare);",
            "raise(SIGUSR1);" if not self.threads else "x1 += x0;",
        ])

    def helper(self, _):
        s = self.random.choice(self.structs)
        n, _, size = self.random.choice(self.objects)
        if not self.cxx and self.random.random() < 0.3:
            return self.random.choice([
                "x0 += (u64)atoi(text);",
                "x1 += (u64)floor((double)(x0 & 1023) / 2);",
                "x2 += (u64)fmod((double)(x0 & 1023), 7);",
                "{ const double d = (double)(x1 & 63) / 4;\n"
                "  x0 += (u64)__builtin_floor(d) + (u64)__builtin_fmod(d, 3); }",
            ])
        return self.random.choice([
            # Calls that only the code generator makes.
            "x0 += (u64)(((unsigned __int128)x1 << 32) / ((unsigned __int128)x2 | 1));",
            "x1 += (u64)(unsigned __int128)((double)x0 * 1e-3);",
            # What is compared where the call was, and what libc looks at.
            # An object's comparison with itself is left out by the code generator.
            f"x2 += (u64)(memcmp(&{n}[0], {f'&{n}[{size - 1}]' if size > 1 else 'text'}, "
            f"sizeof {n}[0] < 16 ? sizeof {n}[0] : 16) == 0);",
            "x0 += (u64)(strchr(text, 'm') != 0) + (u64)strncmp(text, \"memo\", 3);",
            "{ char *const copy = strdup(text);\n  x1 += strlen(copy);\n  free(copy); }",
            f"x0 += variadic(3, {self.value(1)}, {self.value(0)}, {self.value(0)});",
            f"{{ struct {s.name} t = make_{s.name}(x0);\n  x1 += take_{s.name}(t); }}",
            f"x2 += recursive(({self.value(0)}) & 15, x0);",
            "x1 = pure(x0 & 15);",
            "x0 += inlined(x1);",
            "x2 += lookup(x0);",
        ])

    def assembly(self, _):
        r = self.random
        n, kind, size = r.choice(self.arrays)
        place = f"{n}[{self.index_below(size)}]"
        if r.random() < 0.4:
            # One instruction that does what its operand says, and as much of it.
            width = {"8": "b", "16": "w", "32": "l", "64": "q"}[kind.lstrip("ui")] if kind not in FLOATS else \
                {"float": "l", "double": "q"}[kind]
            return r.choice([
                f'__asm__ volatile("test{width} $1, %0" : : "m"({place}) : "cc");',
                f'__asm__ volatile("or{width} $0, %0" : "+m"({place}) : : "cc");',
                f'__asm__ volatile("and{width} $-1, %0" : "+m"({place}) : : "cc", "memory");',
                f'__asm__ volatile("mov{width} $9, %0" : "=m"({place}));',
            ])
        return r.choice(['__asm__ volatile("" ::: "memory");', f"__builtin_prefetch(&{place});"])

    def heap_block(self, _):
        n = self.name("m")
        inner = f"for (u32 i = 0; i < count; ++i) {n}[i] = x0 + i;\nx1 += {n}[x2 % count];"
        grow = f"{n} = (u64 *)realloc({n}, (count + 8) * 8);" if self.random.random() < 0.5 else ""
        count = f"u32 count = 1 + (u32)(({self.value(0)}) & 63);"
        if self.cxx and self.random.random() < 0.5:
            return f"{{ {count}\n  u64 *{n} = new u64[count];\n  {inner}\n  delete[] {n}; }}"
        return f"{{ {count}\n  u64 *{n} = (u64 *)malloc(count * 8);\n  {inner}\n  {grow}\n  free({n}); }}"

    def branch(self, depth):
        r = self.random
        first = Block(f"if ({self.condition()}) {{", self.block(r.randint(1, 3), depth - 1))
        if r.random() < 0.5:
            return first
        return Block("{", [f"const int yes = {self.condition()};", Block("if (yes) {", first.body),
                           Block("if (!yes) {", self.block(r.randint(1, 2), depth - 1))])

    def vectorisable(self, _):
        """Loops without calls, of the kinds that vectorisers know."""
        r = self.random
        (a, ta, na), (b, tb, nb) = r.choice(self.arrays), r.choice(self.arrays)
        n = min(na, nb)
        i = self.name("i_")
        bound = r.choice([str(n), str(n - 1), f"((u32)({self.value(0)}) & {n - 1})"])
        step = r.choice([1, 1, 1, 2, 3])
        convert = f"({ta})(u64)" if ta not in FLOATS else f"({ta})"
        limit = " & 1023" if ta in FLOATS else ""
        body = r.choice([
            f"{a}[{i}] = {convert}(((u64){b}[{i}] * 3 + {i}){limit});",
            f"{a}[{i}] = {convert}(((u64){a}[{i}] + (u64){b}[{n - 1} - {i}]){limit});",
            f"if ({b}[{i}] > 50) {a}[{i}] = {convert}((u64){i}{limit});",
            f"if ({b}[{i}] > 50) {a}[{i}] = {convert}(((u64){a}[{i}] + 1){limit});",
            f"x0 += (u64){a}[{i}] ^ (u64){b}[{i}];",
            f"x1 += (u64){a}[(u64){b}[{i}] & {na - 1}];",
            f"{a}[(u64){b}[{i}] & {na - 1}] = {convert}((x1 + {i}){limit});",
            f"if ({a}[{i}] == {b}[{i}]) {{ x2 += {i}; break; }}",
            f"{a}[{i}] = {b}[{i}] > 5 ? {convert}((u64){b}[{i}]{limit}) : {convert}0;",
        ])
        if r.random() < 0.15:
            return (f"{{ v8 w;\n  memcpy(&w, {a}, sizeof w < sizeof {a} ? sizeof w : sizeof {a});\n"
                    f"  for (u32 {i} = 0; {i} < 8; ++{i}) w = w * w + {i};\n  x0 += w[x1 & 7]; }}"
                    if na * {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "u32": 4, "i32": 4, "float": 4}.get(ta, 8) >= 32
                    else f"for (u32 {i} = 0; {i} < {n}; ++{i}) {body}")
        if r.random() < 0.25:
            j = self.name("j_")
            return (f"for (u32 {j} = 0; {j} < {r.choice([2, 5])}; ++{j})\n"
                    f"  for (u32 {i} = {j}; {i} < {min(n, 64)}; ++{i}) {body}")
        return f"for (u32 {i} = 0; {i} < {bound}; {i} += {step}) {body}"

    def inside(self, name, make):
        self.local.append(name)
        made = make()
        self.local.remove(name)
        return made

    def loop(self, depth):
        r = self.random
        i = self.name("i_")
        body = self.inside(i, lambda: self.block(r.randint(1, 3), depth - 1))
        if r.random() < 0.4:
            body.insert(r.randint(0, len(body)), f"if ({self.condition()}) {r.choice(['break', 'continue'])};")
        return Block(f"for (u64 {i} = 0; {i} < {r.choice([2, 3, 9, 20])} && --fuel > 0; ++{i}) {{", body)

    def do_while(self, depth):
        n = self.name("n")
        inner = Block("do {", self.block(self.random.randint(1, 2), depth - 1),
                      f"}} while (--{n} && fuel > 0 && {self.condition()});")
        return Block(f"{{ u32 {n} = {self.random.choice([1, 3, 12])};", [inner])

    def switch(self, depth):
        r = self.random
        cases = []
        for case in range(r.randint(2, 6)):
            cases.append(Block(f"case {case * r.choice([1, 1, 9])}: {{", self.block(r.randint(1, 2), depth - 1),
                               "} " + ("break;" if r.random() < 0.7 else "")))
        seen = {}
        for case in cases:
            seen[case.head] = case
        cases = list(seen.values()) + [Block("default: {", self.block(1, depth - 1), "} break;")]
        return Block(f"switch (({self.value(1)}) & {r.choice([3, 7, 15])}) {{", cases)

    def goto(self, depth):
        """A loop with several entries."""
        r = self.random
        a, b, end, n = (self.name(p) for p in ("A", "B", "E", "n"))
        first, second = self.block(1, 0), self.block(1, 0)
        if not self.cxx and r.random() < 0.3:
            start = f"static void *const to_{n}[] = {{&&{a}, &&{b}, &&{end}}};\ngoto *to_{n}[({self.value(0)}) % 3];"
        else:
            start = f"if ({self.condition()}) goto {b};"
        # The statements may jump back, so what they declare is in scopes of its own.
        body = [f"u32 {n} = 0;\n{start}", f"{a}:;", Block("{", first),
                f"if (++{n} > {r.choice([2, 10])}) goto {end};", f"{b}:;", Block("{", second),
                f"if (++{n} < 12 && ({self.condition()})) goto {a};", f"{end}:;"]
        return "\n".join(Block("{", body).lines(0))

    def frame_block(self, depth):
        """Memory of the frame whose size is known at run time only."""
        n = self.name("v")
        size = f"u32 count = 1 + (u32)(({self.value(0)}) & 31);"
        new = f"u32 *{n} = (u32 *)alloca(count * 4);"
        if not self.cxx and self.random.random() < 0.5:
            new = f"u32 {n}[count];"
        fill = f"for (u32 i = 0; i < count; ++i) {n}[i] = (u32)x0 * i;"
        return Block("if (--fuel > 0) {", ["\n".join([size, new, fill, f"x1 += {n}[x0 % count];"]), *self.block(1, 0)])

    # ---- C++ ----

    def objects_of_classes(self, _):
        n, _, size = self.random.choice(self.arrays)
        return self.random.choice([
            "{ Guard guard(&x0);\n  x1 += fn%d(x0, x2); }" % self.random.randrange(self.index, self.count),
            "{ Shape *s = x0 & 1 ? new Shape(x1) : new Square(x2);\n  x1 += s->area(x0);\n  delete s; }",
            f"x2 += total({n}, {size});",
            "{ auto twice = [&](u64 k) { x0 += k; return x0 * 2; };\n  x1 += twice(x2) + twice(3); }",
            "{ static thread_local u64 kept = fn%d(3, 4);\n  kept += x0;\n  x1 ^= kept; }" % (self.count - 1),
        ])

    def throw(self, _):
        what = self.random.choice(["(int)(x0 & 255)", "Error{x1}", "Oops{{x1}, {x0, x1, x2}}"])
        return f"if ({self.condition()}) throw {what};"

    def attempt(self, depth):
        body = self.block(self.random.randint(1, 3), depth - 1)
        if self.random.random() < 0.5:
            body.insert(0, "Guard guard(&x2);")
        handler = self.random.choice([
            "} catch (const Oops &e) { x0 += e.more[1]; } catch (const Error &e) { x1 += e.code; }",
            "} catch (int e) { x0 ^= (u64)e; }",
            "} catch (...) { x1 += 1; }",
            "} catch (...) { x1 += 2; if (x0 & 1) throw; }",
        ])
        return Block("try {", body, handler)

    # ---- C ----

    def jump(self, _):
        return f"if (back && {self.condition()}) longjmp(*back, 1);"

    def landing(self, depth):
        """Locals that change between the two returns would be lost: only fuel and globals do."""
        saved, self.writable = self.writable, ["result"]
        n = self.name("j")
        body = [f"result += {self.call()};" for _ in range(self.random.randint(1, 2))]
        other = [f"result ^= {self.call()};"]
        self.writable = saved
        return Block(f"land_{n}:;\n{{ jmp_buf here, *const outer = back;",
                     ["\n".join(["back = &here;", "if (!setjmp(here)) {", *body, "} else {", "back = outer;", *other,
                                 "}", "back = outer;"])])

    # ---- functions that others call ----

    def ending(self):
        r = self.random
        what = r.random()
        if what < 0.25 and self.index + 1 < self.count:
            return f"__attribute__((musttail)) return fn{r.randrange(self.index + 1, self.count)}(x0, x1);" \
                if not (self.cxx or self.jumps) and not self.local_arrays else f"return {self.call()};"
        if what < 0.5:
            return f"return {self.call()};"
        return "return x0 + x1 * 3 + x2;"

    def helpers(self, functions):
        """Declares them all; adds those that are defined once to a unit."""
        r = self.random
        inline = "inline" if self.cxx else "static inline"
        clones = "" if self.units > 1 else '__attribute__((target_clones("avx2", "default"))) '
        n, _, size = r.choice(self.arrays)
        text = f"""\
u64 variadic(int count, ...);
u64 recursive(u64 depth, u64 x);
__attribute__((pure)) u64 pure(u64 i);
{clones}u64 lookup(u64 x);
int compare(const void *a, const void *b);
{inline} u64 inlined(u64 x) {{
  u64 sum = 0;
  for (u32 i = 0; i < 8; ++i)
    sum += (u64){n}[(x + i) & {size - 1}];
  return sum;
}}
"""
        add = lambda head, *lines: functions.append(Function(head, [], ["\n".join(lines)], [], r.randrange(self.units)))
        add("u64 variadic(int count, ...)", "va_list list;\nva_start(list, count);\nu64 sum = 0;",
            "for (int i = 0; i < count; ++i) sum = sum * 3 + va_arg(list, u64);\nva_end(list);\nreturn sum;")
        add("u64 recursive(u64 depth, u64 x)", "u64 mine[3] = {depth, x, depth ^ x};",
            "if (depth == 0 || --fuel < 0) return x;\nreturn recursive(depth - 1, mine[x % 3] + 1) + mine[depth % 3];")
        add("NOINLINE __attribute__((pure)) u64 pure(u64 i)",
            f"return (u64){n}[i & {size - 1}] + (u64){n}[(i * 3) & {size - 1}];")
        add(f"{clones}u64 lookup(u64 x)",
            "static const u16 table[32] = {1, 5, 9, 2, 77};\nu64 sum = 0;",
            f"for (u32 i = 0; i < {size}; ++i) sum += (u64){n}[i] * table[i & 31];", "return sum + table[x & 31];")
        add("int compare(const void *a, const void *b)",
            "u64 x = *(const u64 *)a, y = *(const u64 *)b;\nreturn x < y ? -1 : x > y;")
        if not self.cxx:
            # The program's own, in a unit of their own choice. A compiler that takes them for libc's may fold calls, so
            # nothing that is printed tells how often they ran.
            text += "double floor(double x), fmod(double x, double y);\nextern MINE u32 noted[4];\n"
            add("MINE u32 noted[4];\nint atoi(const char *s)", "noted[0] += s[0];",
                "return (int)inlined((u64)s[0]) & 15;")
            add("double floor(double x)", "noted[1] += (u32)inlined(2);", "return (double)(i64)x;")
            add("double fmod(double x, double y)", "noted[2] += (u32)pure(3);",
                "return x - (double)(i64)(x / y) * y;")
        for s in self.structs:
            text += f"struct {s.name} make_{s.name}(u64 x);\nu64 take_{s.name}(struct {s.name} s);\n"
            path, sizes, kind = s.scalars[0]
            path = path.format(*("0" for _ in sizes))
            limit = " & 1023" if kind in FLOATS else ""
            add(f"NOINLINE struct {s.name} make_{s.name}(u64 x)", f"struct {s.name} s;\nmemset(&s, 0, sizeof s);",
                f"s.{path} = ({kind})(x{limit});\nreturn s;")
            add(f"NOINLINE u64 take_{s.name}(struct {s.name} s)", f"return (u64)s.{path} * 3;")
        handler = "result += (u64)number + (u64)text[3];"
        functions.append(Function("static void on_signal(int number)", [], [handler], [], 0))
        functions.append(Function("__attribute__((constructor)) static void at_start(void)",
                                  ["signal(SIGUSR1, on_signal);"], ["shared[3] += 5;"], [], 0))
        return text
