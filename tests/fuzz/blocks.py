"""Blocks of the heap whose allocator is not called by its name, and the program's own account of them.

Each way to get a block is a few definitions, an expression that takes a block of some bytes, and a statement that gives
it back. The account has the line of the call that is the user's, which no way's own definitions share.
"""

import random

from program import Block, Function

# Drawn apart from everything else, so that a seed's other functions are what they would be without blocks.
SALT = 0xA74
HOW_OFTEN = 0.3
MOST_ENTRIES = 2048

HEADER = """\
struct Hooks {{
  void *(*get)(size_t);
  void *(*clear)(size_t, size_t);
  void *(*more)(void *, size_t);
  int (*even)(void **, size_t, size_t);
  void (*put)(void *);
}};
struct Pool;
struct Ways {{ void *(*take)(const struct Pool *, u32, u32); void (*give)(const struct Pool *, void *); }};
struct Pool {{ const struct Ways *ways; void *(*raw)(size_t); void (*drop)(void *); }};
C_LINKAGE_BEGIN
extern {const}struct Hooks hooks;
extern const struct Pool pool_of_blocks;
extern char *(*copy_of)(const char *), *(*copy_of_some)(const char *, size_t);
void *wrapped(size_t bytes);
void *passed(void *(*get)(size_t), size_t bytes);
void *through(const struct Hooks *with, size_t bytes);
int stored(u8 **at, size_t bytes);
void account(const char *kind, const void *at, const void *old, u64 bytes, const char *file, u32 line);
C_LINKAGE_END
/* A block is touched twice at least. */
#define TOUCH(at, bytes) (((volatile u8 *)(at))[0] = 7, ((volatile u8 *)(at))[(bytes) - 1] ^= 5)
#define TOOK(at, bytes) account("took", at, 0, bytes, __FILE_NAME__, __LINE__)
#define MOVED(old, at, bytes) account("moved", at, old, bytes, __FILE_NAME__, __LINE__)
#define GAVE(at) account("gave", at, 0, 0, __FILE_NAME__, __LINE__)
"""
# Nothing of the account is recorded. It is written as text, where somebody asks for it.
ACCOUNT = """\
struct Entry {{ const char *kind; const void *at, *old; u64 bytes; const char *file; u32 line; }};
static MINE struct Entry entries[{most}];
static MINE u32 entry_count;
#define UNSEEN NOINLINE __attribute__((disable_sanitizer_instrumentation))
UNSEEN void account(const char *kind, const void *at, const void *old, u64 bytes, const char *file, u32 line) {{
  if (entry_count < {most}) {{
    struct Entry *const e = &entries[entry_count++];
    e->kind = kind, e->at = at, e->old = old, e->bytes = bytes, e->file = file, e->line = line;
  }}
}}
UNSEEN static void write_account(void) {{
  const char *const path = getenv("FUZZ_BLOCKS");
  const int out = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  for (u32 i = 0; out >= 0 && i < entry_count; ++i)
    dprintf(out, "%d %s %p %p %llu %s %u\\n", (int)syscall(SYS_gettid), entries[i].kind, entries[i].at, entries[i].old,
            entries[i].bytes, entries[i].file, entries[i].line);
  if (out >= 0)
    close(out);
}}
"""
# What both languages have: a name, the expression, with {n} for the bytes, and what gives the block back.
WAYS = [
    ("(u8 *)hooks.get({n})", "hooks.put({p})"),
    ("(u8 *)hooks.clear({n}, 1)", "hooks.put({p})"),
    ("(u8 *)hooks.more(0, {n})", "free({p})"),
    ("hooks.even((void **)(void *)&{p}, 64, {n}) ? (u8 *)0 : {p}", "hooks.put({p})"),
    ("(u8 *)through(&hooks, {n})", "hooks.put({p})"),
    ("(u8 *)wrapped({n})", "free({p})"),
    ("(u8 *)wrapped({n})", "hooks.put({p})"),
    ("(u8 *)passed(malloc, {n})", "free({p})"),
    ("(u8 *)passed(wrapped, {n})", "free({p})"),
    ("(u8 *)passed(hooks.get, {n})", "free({p})"),
    ("stored(&{p}, {n}) ? {p} : (u8 *)0", "free({p})"),
    ("(u8 *)pool_of_blocks.ways->take(&pool_of_blocks, 1, {n})",
     "pool_of_blocks.ways->give(&pool_of_blocks, {p})"),
    ("(u8 *)(a & 64 ? malloc : wrapped)({n})", "free({p})"),
    ("(u8 *)strndup(\"a text that is longer than what is taken of it\", {n} & 31)", "free({p})",
     "({n} & 31) + 1"),
    ("asprintf((char **)(void *)&{p}, \"%0*d\", (int){n}, 7) > 0 ? {p} : (u8 *)0", "free({p})", "{n} + 1"),
    ("(u8 *)strdup(\"a text of the program's\")", "hooks.put({p})", "24"),
    ("(u8 *)copy_of(\"a copy by a pointer\")", "hooks.put({p})", "20"),
    ("(u8 *)copy_of_some(\"a copy by a pointer\", {n} & 15)", "free({p})", "({n} & 15) + 1"),
    ("(u8 *)realpath(\"/proc/..\", 0)", "free({p})", "2"),
    ("(u8 *)wcsdup(L\"wide\")", "free({p})", "20"),
    ("(u8 *)aligned_alloc(32, ({n} + 31) & ~31u)", "free({p})", "(({n} + 31) & ~31u)"),
]
# Memory resources of the program's own: one that allocates, and others that pass on to it.
RESOURCES = """\
static struct Heap : std::pmr::memory_resource {
  void *do_allocate(size_t bytes, size_t) override { return wrapped(bytes); }
  void do_deallocate(void *at, size_t, size_t) override { free(at); }
  bool do_is_equal(const memory_resource &other) const noexcept override { return this == &other; }
} a_heap;
static struct Passing : std::pmr::memory_resource {
  std::pmr::memory_resource *to;
  u64 made = 0;
  explicit Passing(std::pmr::memory_resource *to) : to(to) {}
  void *do_allocate(size_t bytes, size_t align) override { return made += bytes, to->allocate(bytes, align); }
  void do_deallocate(void *at, size_t n, size_t align) override { to->deallocate(at, n, align); }
  bool do_is_equal(const memory_resource &other) const noexcept override { return this == &other; }
} passing{&a_heap}, passing_twice{&passing};
static std::pmr::memory_resource *volatile a_resource = &a_heap, *volatile a_passing = &passing;
static std::pmr::memory_resource *volatile passes_twice = &passing_twice;
"""
# In C++: includes, definitions, the expression and what gives back, and the bytes where they are others.
IN_CXX = [
    (["memory_resource"], "", "(u8 *)std::pmr::new_delete_resource()->allocate({n}, 8)",
     "std::pmr::new_delete_resource()->deallocate({p}, {n}, 8)"),
    (["memory_resource"], RESOURCES, "(u8 *)a_resource->allocate({n}, 8)", "a_resource->deallocate({p}, {n}, 8)"),
    (["memory_resource"], RESOURCES, "(u8 *)(a & 64 ? a_passing : passes_twice)->allocate({n}, 8)",
     "a_passing->deallocate({p}, {n}, 8)"),
    ([], """\
struct Source {
  virtual ~Source() {}
  virtual void *take(size_t bytes) { return wrapped(bytes); }
  virtual void give(void *at) { free(at); }
};
static struct Other : Source {
  void *take(size_t bytes) override { return ::operator new(bytes); }
  void give(void *at) override { ::operator delete(at); }
} other_source;
static Source *volatile a_source = &other_source;
static void *(Source::*take_of)(size_t) = &Source::take;
""", "(u8 *)(a_source->*take_of)({n})", "a_source->give({p})"),
    ([], """\
struct Own {
  u64 kept[5];
  static void *operator new(size_t bytes) { return hooks.get(bytes); }
  static void operator delete(void *at) { hooks.put(at); }
};
""", "(u8 *)new Own", "delete (Own *){p}", "40"),
    ([], "", "(u8 *)::operator new({n}, std::nothrow)", "::operator delete({p})"),
    ([], "struct alignas(64) Wide { u64 kept[9]; };\n", "(u8 *)new Wide", "delete (Wide *){p}", "128"),
    ([], "template <void *(*Get)(size_t)> static void *from(size_t bytes) { return Get(bytes); }\n",
     "(u8 *)from<malloc>({n})", "free({p})"),
    (["functional"], "static std::function<void *(size_t)> a_function = malloc;\n", "(u8 *)a_function({n})",
     "free({p})"),
    ([], "static void *(*a_new)(size_t) = operator new;\nstatic void (*a_delete)(void *) = operator delete;\n",
     "(u8 *)a_new({n})", "a_delete({p})"),
]
# Things of the standard library's types, which are gone where their scope ends: includes, definitions, the object, how
# many bytes of the block stand before what it holds, the address of that and its bytes.
CONTAINERS = [
    (["vector"], "", "std::vector<u64> c({n})", 0, "c.data()", "{n} * 8"),
    (["vector"], """\
template <class T> struct Hooked {
  using value_type = T;
  Hooked() {}
  template <class U> Hooked(const Hooked<U> &) {}
  T *allocate(size_t count) { return (T *)hooks.get(count * sizeof(T)); }
  void deallocate(T *at, size_t) { hooks.put(at); }
  bool operator==(const Hooked &) const { return true; }
  bool operator!=(const Hooked &) const { return false; }
};
""", "std::vector<u64, Hooked<u64>> c({n})", 0, "c.data()", "{n} * 8"),
    (["forward_list"], "", "std::forward_list<u64> c(1, {n})", 8, "&c.front()", "8"),
    (["memory"], "", "auto c = std::make_shared<u64>({n})", 16, "c.get()", "8"),
    (["memory"], "", "auto c = std::make_unique<u64[]>({n})", 0, "c.get()", "{n} * 8"),
    (["vector", "memory_resource"], "", "std::pmr::vector<u64> c({n})", 0, "c.data()", "{n} * 8"),
]
# And of those that call functions of libstdc++, which are recorded.
IN_LIBSTDCXX = [
    (["list"], "", "std::list<u64> c(1, a)", 16, "&c.back()", "8"),
    (["map"], "", "std::map<u64, u64> c{{{{{n}, a}}}}", 32, "&*c.begin()", "16"),
    (["string"], "", "std::string c({n} + 16, 'c')", 0, "&c[0]", "{n} + 17"),
]


class Blocks:
    """Adds to what is around a program's functions."""

    def __init__(self, seed, cxx, units, around):
        r = self.random = random.Random(seed ^ SALT)
        self.cxx = cxx
        if around.own_heap or r.random() > HOW_OFTEN:
            return
        around.has_blocks = True
        around.in_libstdcxx = cxx and r.random() < 0.3
        self.containers = CONTAINERS + (IN_LIBSTDCXX if around.in_libstdcxx else [])
        const = r.choice(["", "const "])
        around.header += "#include <fcntl.h>\n#include <sys/syscall.h>\n#include <wchar.h>\n"
        around.header += HEADER.format(const=const)
        around.data += ACCOUNT.format(most=MOST_ENTRIES)
        around.functions += self.definitions(const, r.randrange(units), around)
        for number in range(r.choice([1, 2, 3])):
            unit = r.randrange(units)
            around.header += f"u64 blocks_{number}(u64 a);\n"
            around.functions += self.user(number, unit)
            around.each.append(f"result += blocks_{number}(result & 127);")
        around.last.insert(0, "write_account();")

    def definitions(self, const, unit, around):
        """Hooks and wrappers, which may be static, inlined, and in chains."""
        r = self.random
        table = "{malloc, calloc, realloc, posix_memalign, free}"
        text = []
        if const or r.random() < 0.5:
            text.append(f"extern {const}struct Hooks hooks;\n{const}struct Hooks hooks = {table};")
        else:
            text.append("struct Hooks hooks;\nNOINLINE static void set_hooks(struct Hooks with) { hooks = with; }\n"
                        "__attribute__((constructor)) static void hook(void) {\n"
                        f"  const struct Hooks usual = {table};\n  set_hooks(usual);\n}}")
        bottom = r.choice(["malloc(bytes)", "calloc(1, bytes)", "hooks.get(bytes)", "realloc(0, bytes)",
                           "memalign(16, bytes)", "hooks.clear(bytes, 1)"])
        around.header += "#include <malloc.h>\n"
        depth = r.randint(1, 4)
        for level in range(depth):
            name = "wrapped" if level == depth - 1 else f"wrapped_{level}"
            head = "" if level == depth - 1 else r.choice(["static ", "NOINLINE static "])
            made = bottom if level == 0 else f"wrapped_{level - 1}(bytes)"
            body = r.choice([f"return {made};", f"void *const at = {made};\n  if (!at) abort();\n  return at;",
                             f"void *at = 0;\n  if (bytes) at = {made};\n  return at;"])
            text.append(f"{head}void *{name}(size_t bytes) {{\n  {body}\n}}")
        text += ["void *passed(void *(*get)(size_t), size_t bytes) { return get(bytes); }",
                 "void *through(const struct Hooks *with, size_t bytes) { return with->get(bytes); }",
                 "int stored(u8 **at, size_t bytes) { *at = (u8 *)wrapped(bytes); return *at != 0; }",
                 "static void *take_of_pool(const struct Pool *p, u32 count, u32 bytes) "
                 "{ return p->raw((size_t)count * bytes); }",
                 "static void give_to_pool(const struct Pool *p, void *at) { p->drop(at); }",
                 "static const struct Ways ways_of_pool = {take_of_pool, give_to_pool};",
                 "char *(*copy_of)(const char *) = strdup;",
                 "char *(*copy_of_some)(const char *, size_t) = strndup;",
                 f"const struct Pool pool_of_blocks = {{&ways_of_pool, {r.choice(['malloc', 'wrapped'])}, free}};"]
        return [Function(None, ["C_LINKAGE_BEGIN", *text, "C_LINKAGE_END"], [], [], unit)]

    def user(self, number, unit):
        """A function that takes, touches and gives; each line says so in the account."""
        r = self.random
        includes, texts, blocks, variables = [], [], [], []
        for index in range(r.randint(3, 8)):
            if self.cxx and r.random() < 0.35:
                new, text, made, before, at, size = r.choice(self.containers)
                n = r.choice([1, 3, 8, 60])
                made, at, size = (part.format(n=n) for part in (made, at, size))
                base = f"(const u8 *){at} - {before}"
                blocks.append([f"{{ {made}; TOOK({base}, {size} + {before});\n  TOUCH({at}, {size});\n"
                               f"  GAVE({base}); }}"])
            else:
                new, text, statements = self.taking(index)
                variables.append(f"u8 *b{index} = 0;")
                blocks.append(statements)
            includes += [f"#include <{name}>" for name in new]
            texts.append(text)
        texts = [text for text in dict.fromkeys(texts) if text]
        if texts:
            texts = [f"namespace in_{number} {{", *texts, "}"]
            variables.append(f"using namespace in_{number};")
        definitions = Function(None, [*dict.fromkeys(includes), *texts], [], [], unit)
        end = [f"if ({line[4:6]}) a += 3;" for line in variables if line.startswith("u8")]
        # Or its last call would become a jump, where the linker finds that it returns what it got: blocks are its own.
        variables.append("volatile u64 left;")
        return [definitions, Function(f"NOINLINE u64 blocks_{number}(u64 a)", variables, self.mixed(blocks),
                                      [*end, "left = a;", "return a;"], unit)]

    def taking(self, index):
        """Includes, definitions and the statements of one block, in their order."""
        r = self.random
        p, n = f"b{index}", r.choice([1, 8, 24, 40, 200, 5000])
        if self.cxx and r.random() < 0.6:
            new, text, take, give, *size = r.choice(IN_CXX)
        else:
            new, text = [], ""
            take, give, *size = r.choice(WAYS)
        size = size[0].format(n=n) if size else str(n)
        taken = f"{p} = {take.format(n=n, p=p)}; TOOK({p}, {size});\nTOUCH({p}, {size});"
        given = f"if ({p}) {{ GAVE({p}); {give.format(n=n, p=p)}; {p} = 0; }}"
        if r.random() < 0.25:
            return new, text, [Block(f"for (u32 i = 0; i < {r.choice([2, 9])}; ++i) {{", [taken, given])]
        statements = [taken]
        if give in ("free({p})", "hooks.put({p})") and r.random() < 0.3:
            longer = r.choice(["hooks.more", "realloc"])
            statements.append(f"if ({p}) {{ u8 *const old = {p}; {p} = (u8 *){longer}({p}, 777); "
                              f"MOVED(old, {p}, 777); }}\nTOUCH({p}, 777);")
        return new, text, [*statements, given] if r.random() < 0.9 else statements

    def mixed(self, blocks):
        """All statements, those of each block in their order."""
        found, left = [], list(blocks)
        while left:
            queue = self.random.choice(left)
            found.append(queue.pop(0))
            left = [each for each in left if each]
        return found
