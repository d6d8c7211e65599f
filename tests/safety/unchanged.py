"""Cases in which the runtime stands in a program's way: on its stack, in its handlers, among its names."""

from harness import Run, both, compare, compile_program, expect, run


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
