"""What is around the functions of a random program: what runs before, after and beside them without their call."""

import random

from blocks import Blocks
from program import Function

# Drawn apart from the program itself, so that a seed's functions do not depend on what is around them.
SALT = 0xA70

RESOLVED = """\
static volatile int which = {which};
static u64 resolved_one(u64 x) {{ return x * 3 + chosen; }}
static u64 resolved_two(u64 x) {{ chosen += x; return x ^ 9; }}
C_LINKAGE u64 (*choose(void))(u64) {{ return which ? resolved_one : resolved_two; }}
"""
# Blocks are never used again, so none has to be cleared.
OWN_HEAP = """\
C_LINKAGE_BEGIN
u8 pool[1 << 24] __attribute__((aligned(16)));
u64 pool_used;
void *malloc(size_t bytes) NOTHROW {
  u64 *const block = (u64 *)(pool + pool_used);
  pool_used += (bytes + 31) & ~15ull;
  block[0] = bytes;
  return block + 2;
}
void free(void *block) NOTHROW {
  if (block)
    ((u64 *)block)[-1] += 1;
}
void *calloc(size_t count, size_t bytes) NOTHROW { return malloc(count * bytes); }
void *realloc(void *old, size_t bytes) NOTHROW {
  u8 *const block = (u8 *)malloc(bytes);
  for (u64 i = 0; old && i < ((u64 *)old)[-2] && i < bytes; ++i)
    block[i] = ((u8 *)old)[i];
  return block;
}
void *memalign(size_t alignment, size_t bytes) NOTHROW {
  pool_used = ((pool_used + 16 + alignment - 1) & ~(alignment - 1)) - 16;
  return malloc(bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) NOTHROW { return memalign(alignment, bytes); }
int posix_memalign(void **out, size_t alignment, size_t bytes) NOTHROW { *out = memalign(alignment, bytes); return 0; }
C_LINKAGE_END
"""
PLUG_IN = """\
MINE_IN_PLUG_IN u64 of_the_thread[400] = {5};
static u32 at_start;
__attribute__((constructor)) static void begin(void) { at_start += 3; }
C_LINKAGE_BEGIN
u64 plugged(u64 *a, u64 x);
u64 plugged(u64 *a, u64 x) {
  a[0] += x;
  a[1] ^= a[0];
  of_the_thread[x & 127] += a[1];
  a[2] += of_the_thread[0] + at_start;
  for (u32 i = 0; i < 64; ++i)
    of_the_thread[i + 128] = of_the_thread[i] + a[i & 3];
  return a[2] + of_the_thread[170];
}
C_LINKAGE_END
"""
OPEN = """\
{ char path[4200];
  const long n = readlink("/proc/self/exe", path, 4096);
  strcpy(path + (n > 0 ? n : 0), ".plug-in.so");
  void *const library = dlopen(path, RTLD_NOW);
  if (library) plugged = (u64 (*)(u64 *, u64))dlsym(library, "plugged"); else puts(dlerror()); }"""
# A loop whose count has wrapped, and that ends where memory does.
DOOMED = [
    "u32 *const p = (u32 *)doomed;\nconst u32 n = nothing;\nfor (u32 i = 0; i != n - 1; ++i) p[i] += i;",
    "u64 *const p = (u64 *)doomed;\nfor (u64 i = 0; i < (u64)nothing - 1; ++i) p[i] = i;",
    "u8 *const p = doomed;\nfor (u64 i = 0; i < (u64)nothing - 3; i += 3) p[i] ^= p[i + 1];",
    "memset(doomed, 7, (size_t)nothing - 1);",
    # Not so long that the end comes round to the beginning: some of glibc's versions, as that which it takes in
    # Valgrind, see an overlap there, and return.
    "memmove(doomed, doomed + 64, ((size_t)nothing + 1) << 46);",
]
CHILD = """\
/* Ends here, without and with a signal. */
if (getenv("FUZZ_CHILDREN")) {{
  fflush(stdout);
  const pid_t child = {make};
  if (child == 0)
    in_child((void *)0);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != {status}) printf("a child ended with %x\\n", status);
}}"""
ENDS = [
    ("free(never);\n    _exit(0);", 0),
    ("memcpy(text, text + 8, (size_t)(never != 0));\n    quick_exit(0);", 0),
    ("free(never);\n    exit(0);", 0),
    ("shared[9] += 4;\n    execl(\"/bin/true\", \"true\", (char *)0);", 0),
    ("abort();", 6),
    ("doom();", 11),
    ("doom();", 11),
]


# A child with and without libc's help. Of those that it did not make, libc takes the thread's number for the parent's.
MAKES = [
    ("fork()", True),
    ("fork()", True),
    ("_Fork()", True),
    ("(pid_t)syscall(SYS_fork)", False),
    ("(pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)", False),
    ("clone(in_child, child_stack + sizeof child_stack, SIGCHLD, (void *)0)", False),
]
# Functions of libc's name that do something else, so that it shows who was called: their parameters, body and a call.
OWN = {
    "swab": ("void", "const void *from, void *to, ssize_t count",
             "const u8 *f = (const u8 *)from;\n  u8 *t = (u8 *)to;\n"
             "  for (ssize_t i = 0; i < count; ++i) t[i] = f[i] ^ {key};",
             "swab(text, text + 64, (ssize_t)(result & 31));"),
    "memccpy": ("void *", "void *to, const void *from, int stop, size_t count",
                "u8 *t = (u8 *)to;\n  const u8 *f = (const u8 *)from;\n"
                "  for (size_t i = 0; i < count; ++i) t[i] = f[i] + {key};\n  return stop ? to : (void *)0;",
                "memccpy(text + 32, text, (int)(result & 7), (size_t)(result & 15));"),
    "memfrob": ("void *", "void *at, size_t count",
                "u8 *t = (u8 *)at;\n  for (size_t i = 0; i < count; ++i) t[i] += {key};\n  return at;",
                "memfrob(text + 128, (size_t)(result & 63));"),
}
# Two of them differ, or GCC would make one of both (-fipa-icf).
FOREIGN = """\
static __attribute__((noinline)) unsigned long long step_{number}(unsigned long long x) {{
  volatile unsigned long long kept[4] = {{x, {key}, 3, {number}}};
  return kept[x & 3] * 5 + kept[1];
}}
unsigned long long foreign_{number}(unsigned long long x) {{ return step_{number}(x) ^ step_{number}(x + 1); }}
"""


class Surroundings:
    """Parts for the header, the first unit and others, and what `main` and `run` do besides."""

    def __init__(self, seed, cxx, threads, units):
        r = self.random = random.Random(seed ^ SALT)
        self.mine = "__thread" if threads else ""
        self.header = self.data = self.plug_in = ""
        self.functions, self.first, self.each, self.last, self.final, self.variables = [], [], [], [], [], []
        self.last_of_a_thread()
        r = self.random = random.Random(seed ^ SALT + 1)
        linkage = ('extern "C" ', 'extern "C" {', "}", "noexcept") if cxx else ("", "", "", "")
        names = ("C_LINKAGE", "C_LINKAGE_BEGIN", "C_LINKAGE_END", "NOTHROW")
        self.header += "".join(f"#define {name} {text}\n" for name, text in zip(names, linkage))
        self.forking = self.killing = False
        self.own_heap = not threads and r.random() < 0.15
        if self.own_heap:
            self.data += OWN_HEAP
            self.header += "C_LINKAGE_BEGIN\nextern u8 pool[1 << 24];\nC_LINKAGE_END\n"
            self.variables.append(("heap", "pool"))
        if self.own_heap or r.random() < 0.2:
            self.opens_a_plug_in(threads)
        if r.random() < 0.3:
            self.resolves(r.randrange(units))
        for unit in range(units):
            self.starts_and_ends(unit, cxx)
        if r.random() < 0.3:
            self.forks(cxx)
        self.random = random.Random(seed ^ SALT + 2)
        self.foreign, self.foreign_names = "", []
        if self.random.random() < 0.25:
            self.has_a_name_of_libc(self.random.randrange(units))
        if self.random.random() < 0.25:
            self.calls_another_compiler()
        self.has_blocks = self.in_libstdcxx = False
        Blocks(seed, cxx, units, self)

    def last_of_a_thread(self):
        """Definitions, and what a thread does last: its last segment has a word that is zero by rights."""
        if self.random.random() > 0.4:
            return
        # Ends an object that there never was, or copies nothing.
        nothing = self.random.choice(["free(optional);", "memcpy(text, text + 8, (size_t)(optional != 0));"])
        self.data += f"{self.mine} u64 *volatile optional;\n"
        self.last.append(nothing)

    def opens_a_plug_in(self, threads):
        """A library that is opened when the program runs: the address of what is a thread's own is found by a call."""
        self.plug_in = PLUG_IN.replace("MINE_IN_PLUG_IN", "__thread")
        self.header += "#include <dlfcn.h>\n"
        self.data += f"static u64 (*plugged)(u64 *, u64);\nstatic {self.mine} u64 handed[4];\n"
        self.first.append(OPEN)
        self.each.append("if (plugged) result += plugged(handed, result);")
        if threads:
            # The thread ends on a path of its own; the first one does not.
            self.last.append("if (argument != (void *)7) pthread_exit((void *)result);")

    def resolves(self, unit):
        """A function that is chosen before the image is relocated."""
        which = self.random.choice([0, 1])
        self.header += "C_LINKAGE u64 resolved(u64 x);\nextern MINE u64 chosen;\n"
        self.data += "MINE u64 chosen;\n"
        self.variables.append(("local" if self.mine else "global", "chosen"))
        text = RESOLVED.format(which=which)
        self.functions.append(Function(None, [text], [], [
            'C_LINKAGE u64 resolved(u64 x) __attribute__((ifunc("choose")));'], unit))
        self.each.append("result ^= resolved(result & 255);")

    def starts_and_ends(self, unit, cxx):
        """Constructors and destructors of all kinds."""
        r = self.random

        def place():
            return f"shared[{r.randrange(16)}]"

        # What is printed must not depend on their order, which an optimiser changes.
        found = [f"static volatile u64 seen_{unit};"]
        for number in range(r.choice([0, 1, 2])):
            priority = r.choice(["", f"({r.randrange(102, 65535)})"])
            what = r.choice(["constructor", "constructor", "destructor"])
            found.append(f"__attribute__(({what}{priority})) static void at_{what}_{unit}_{number}(void) "
                         f"{{ {place()} += {number + 2}; seen_{unit} = {place()}; }}")
        if unit == 0 and r.random() < 0.3:
            found.append(f"static void before_all(int count, char **words, char **environment) {{ {place()} += 7; }}\n"
                         '__attribute__((section(".preinit_array"), used)) static void (*const before)(int, char **, '
                         "char **) = before_all;")
        if cxx and r.random() < 0.5:
            name = f"object_{unit}"
            early = r.choice(["", f" __attribute__((init_priority({r.randrange(102, 65535)})))"])
            found.append(f"static struct Static_{unit} {{\n  u64 kept[2];\n"
                         f"  Static_{unit}() {{ kept[0] = {place()}; kept[1] = ++{place()}; }}\n"
                         f"  ~Static_{unit}() {{ {place()} += (u32)kept[1]; }}\n}} {name}{early};\n"
                         f"static const u64 computed_{unit} = {place()} + 1;\n"
                         f"const u64 *volatile keep_{unit} = &computed_{unit};")
        if len(found) > 1:
            self.functions.append(Function(None, found, [], [], unit))

    def forks(self, cxx):
        """A child that works and ends in some way, while its parent waits."""
        self.forking = True
        r = self.random
        end, status = r.choice(ENDS)
        make, has_a_number = random.Random(r.random()).choice(MAKES)
        if end == "abort();" and not has_a_number:
            end, status = "doom();", 11
        self.killing = status != 0
        for name in ("sched.h", "sys/mman.h", "sys/resource.h", "sys/syscall.h", "sys/wait.h"):
            self.header += f"#include <{name}>\n"
        self.data += f"{self.mine} u64 *volatile never;\nu8 *doomed;\nvolatile u32 nothing;\n"
        # Of one that a signal ends, what a handler of another did last may be lost.
        ignored = ["signal(SIGUSR1, SIG_IGN);"] if self.killing else []
        self.functions += [
            # Two pages, behind which is nothing.
            Function("NOINLINE static void begin_child(void)", [
                *ignored,
                "const struct rlimit none = {0, 0};\nsetrlimit(RLIMIT_CORE, &none);",
                "doomed = (u8 *)mmap(0, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);",
                "mprotect(doomed, 8192, PROT_READ | PROT_WRITE);"], [], [], 0),
            Function("NOINLINE static void doom(void)", [r.choice(DOOMED)], [], [], 0)]
        called = "result += fn0(5, 6);"
        work_of_the_child = f"try {{ {called} }} catch (...) {{ result += 1; }}" if cxx else called
        work = r.choice(["shared[7] += shared[8] + 1;", work_of_the_child, "qsort(handed_over, 8, 8, compare);"])
        self.data += "u64 handed_over[8] = {5, 2, 9, 4, 1, 1, 8, 0};\n"
        if "child_stack" in make:
            self.data += "u8 child_stack[1 << 20] __attribute__((aligned(16)));\n"
        self.functions.append(Function("NOINLINE static int in_child(void *)" if cxx else
                                       "NOINLINE static int in_child(void *unused)",
                                       ["begin_child();", work, end], [], ["return 0;"], 0))
        self.final.append(CHILD.format(make=make, status=status))

    def has_a_name_of_libc(self, unit):
        """A function that has the name of one of libc's, in one of the ways in which symbols get names."""
        r = self.random
        name = r.choice(sorted(OWN))
        result, parameters, body, call = OWN[name]
        body = body.format(key=r.randrange(1, 100))
        way = r.choice(["itself", "label", "alias", "ifunc"])
        defined = f"{{\n  {body}\n}}"
        text = {
            "itself": [f"{result} {name}({parameters}) NOTHROW {defined}"],
            "label": [f'{result} mine_of_libc({parameters}) __asm__("{name}");',
                      f"{result} mine_of_libc({parameters}) {defined}"],
            "alias": [f"{result} mine_of_libc({parameters}) {defined}",
                      f'{result} {name}({parameters}) NOTHROW __attribute__((alias("mine_of_libc")));'],
            "ifunc": [f"static {result} mine_of_libc({parameters}) {defined}",
                      f"{result} (*choose_mine(void))({parameters}) {{ return mine_of_libc; }}",
                      f'{result} {name}({parameters}) NOTHROW __attribute__((ifunc("choose_mine")));'],
        }[way]
        self.functions.append(Function(None, ["C_LINKAGE_BEGIN", *text, "C_LINKAGE_END"], [], [], unit))
        self.each.append(call)

    def calls_another_compiler(self):
        """An object that memlode does not compile; what it touches is its own."""
        r = self.random
        for number in range(r.choice([1, 2])):
            self.foreign += FOREIGN.format(number=number, key=r.randrange(100))
            self.foreign_names += [f"foreign_{number}", f"step_{number}"]
            self.header += f"C_LINKAGE u64 foreign_{number}(u64 x);\n"
            self.each.append(f"result += foreign_{number}(result & 63);")
