"""Cases in which the runtime stands in a program's way: on its stack, in its handlers, among its names."""

import re

from harness import WORK, Run, both, compare, compile_program, expect, run


def case_walks_through_handlers():
    """Crash reporters, exceptions, and threads that end in handlers: each comes to the same frames."""
    for flags in ([], ["-static"], ["-static-pie"]):
        programs = both("unwinding" + "".join(flags), ["unwinding.cpp"], *flags)
        traced = compare("unwinding", programs, torn=1)
        silent = run([programs["memlode"]])
        expect(silent.stdout == traced.stdout, f"unrecorded, it differs: {silent.stdout}")


def case_user_threads():
    """They are switched in a timer's handler. Whatever it interrupts, each access is recorded once."""
    for flags in ([], ["-static"]):
        plain = compile_program("native", "switches.o", ["switches.c"], "-c")
        programs = both("user_threads" + "".join(flags), ["user_threads.c", plain], *flags)
        for way in ("swap", "jump", "assembly"):
            quiet = compare("user-threads", programs, way, "quiet")
            for _ in range(3):
                traced = Run("user-threads", [programs["memlode"], way, "timer"])
                traced.check_whole()
                found = (traced.stdout, traced.status, traced.accesses)
                expect(found == (quiet.stdout, 0, quiet.accesses), f"{way}: {found}, not {quiet.accesses} accesses")
                expect("switches 6\n" not in traced.done.stderr, "the timer did not switch")
            traced.check_addresses()


def case_many_handlers():
    traced = compare("many-handlers", both("many_handlers", ["many_handlers.cpp"]))
    expect(traced.accesses > 2 * 2100, f"only {traced.accesses} accesses: not all that the handlers did")


# Names of libc's that the runtime defines, and such that it could be tempted to call. In static programs libc
# itself needs the latter.
DEFINED = """execl execle execlp execv execve execveat execvp execvpe fexecve prctl syscall bsd_signal sigaction
signal sigset sysv_signal siglongjmp longjmp pthread_setcanceltype _Exit""".split()
NEEDED = """_exit abort memcpy memmove memset memcmp strlen strchr strcspn strncmp sigemptyset sigaddset sigismember
sigprocmask ssignal pthread_atfork pthread_sigmask at_quick_exit dlsym dlvsym dl_iterate_phdr environ getauxval getpid
mmap munmap close read socket connect""".split()
FORMS = {
    "function": "int NAME(int a) { cells[a & 63] += N; return a + N; }",
    "data": "static int own_N(int a) { cells[a & 63] += N; return a + N; }\nlong NAME = N;",
    "alias": "int own_N(int a) { cells[a & 63] += N; return a + N; }\nint NAME(int) __attribute__((alias(\"own_N\")));",
    "ifunc": "static int own_N(int a) { cells[a & 63] += N; return a + N; }\n"
    "static int (*pick_N(void))(int) { return own_N; }\nint NAME(int) __attribute__((ifunc(\"pick_N\")));",
}


def with_own_names(names, form):
    """A program that gives names of libc's to things of its own."""
    lines = ["extern int printf(const char *, ...);", "volatile long cells[64];", "long sum;"]
    for number, name in enumerate(names, 1):
        text = re.sub(r"\bN\b", str(number), FORMS[form])
        lines.append(text.replace("_N", f"_{number}").replace("NAME", name))
    lines.append("int main(int n, char **v) {")
    for number, name in enumerate(names, 1):
        value = f"{name} = {name} * 2 + own_{number}(n)" if form == "data" else f"{name}(n)"
        lines.append(f"  sum += {value};")
    lines.append('  for (int i = 0; i < 64; i++) sum += cells[i] * i;\n  printf("%ld\\n", sum);\n  return 0;\n}')
    return "\n".join(lines) + "\n"


def case_own_things_with_names_of_libc():
    ways = (("memlode", [], DEFINED + NEEDED), ("embedded", [], DEFINED + NEEDED))
    ways += tuple(("memlode", [flag], DEFINED) for flag in ("-static", "-static-pie"))
    for kind, flags, names in ways:
        for form in FORMS:
            name = f"names-{form}-{kind}{''.join(flags)}"
            source = WORK / f"{name}.c"
            source.write_text(with_own_names(names, form))
            options = [*flags, "-w", "-fno-builtin"]
            native = compile_program("native", name, [source], *options)
            ours = compile_program(kind, name, [source], *options)
            expected = run([native])
            expect(expected.returncode == 0, f"{name} does not work natively: {expected}")
            silent = run([ours])
            expect((silent.returncode, silent.stdout) == (0, expected.stdout), f"{name}, unrecorded: {silent}")
            traced = Run(name, [ours])
            expect((traced.status, traced.stdout) == (0, expected.stdout), f"{name}: {traced.done}")
            traced.check_whole()
            expect(traced.accesses >= 2 * len(names), f"{name}: only {traced.accesses} accesses")
