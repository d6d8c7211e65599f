"""What a program may do that a recorder could get wrong. Each case is built by clang and by memlode's compilers.

    python3 tests/safety/safety.py [CASE…]

A case passes when output and exit status are the same with and without memlode, the trace is sound, nothing is
lost that should not be, and every access that is said to be of a global array lies in that array. The programs
tell on standard error where their arrays are.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import unchanged
from harness import (
    ALLOCATORS,
    FLAGS,
    HERE,
    KINDS,
    MEMLODE,
    WORK,
    Failure,
    Run,
    both,
    compare,
    compile_program,
    expect,
    run,
)


def case_signals_on_the_same_stack():
    compare("storm-same", both("storm", ["storm.c"]), "same")


def case_signals_on_an_alternate_stack():
    compare("storm-alternate", both("storm", ["storm.c"]), "alternate")


def case_signals_inside_handlers():
    compare("storm-nested", both("storm", ["storm.c"]), "nested")


def case_siglongjmp_out_of_handlers():
    for flags in ([], ["-D_FORTIFY_SOURCE=2"], ["-static"]):
        programs = both("storm-jumps" + "".join(flags), ["storm.c"], *flags)
        traced = compare("storm-jump", programs, "jump", torn=100_000)
        expect(traced.summary["torn_segments"] > 0, "no handler was left in the middle of a segment")


def case_longjmp():
    compare("longjmp", both("jumps", ["jumps.c"]))


def case_own_functions_of_libc_and_a_plugin():
    """A malloc, a memcpy and thread-locals of a library: each runs what records in the middle of what records."""
    programs = both("own-heap", ["own_heap.c"], "-rdynamic", "-fno-builtin-malloc", "-ldl")
    plugins = {kind: compile_program(kind, "plugin.so", ["plugin.c"], "-shared", "-fPIC") for kind in KINDS}
    native = run([programs["native"], plugins["native"]])
    traced = Run("own-heap", [programs["memlode"], plugins["memlode"]])
    expect((traced.stdout, traced.status) == (native.stdout, native.returncode), f"{native} natively, {traced.done}")
    traced.check_whole()
    found = traced.by_function()
    expect(found.get("work") == 40 * 12, f"{found.get('work')} accesses in work")
    expect("memcpy" not in found, "an own memcpy's copying is its callers'")
    # Three a round, the far side of each copy that is not empty, and one that is printed.
    copies = sum(1 for i in range(1000) if i & 15)
    expect(found["main", "records"] == 3 * 1000 + copies + 1, f"{found['main', 'records']} accesses to records")
    expect(found["note"] >= 8 * 1000, f"{found['note']} accesses in note")


def case_what_is_not_recorded_is_told():
    """By executions of what the compiler left out, in every report."""
    programs = both("assembly", ["assembly.c"])
    traced = Run("assembly", [programs["memlode"]])
    expect(traced.status == 0, f"{traced.done}")
    report = run([MEMLODE, "report", "--machine", "generic", traced.directory])
    said = "not recorded, by executions: inline assembly 1, bare 1, printf 1"
    expect(said in report.stdout, f"{said!r} is not in\n{report.stdout}{report.stderr}")
    expect("loaded and not recorded" not in report.stdout, "the system's libraries are told by more than calls")


def case_exceptions_through_plain_frames():
    programs = {}
    for kind in KINDS:
        plain = compile_program("native", "throw_between.o", ["throw_between.cpp"], "-c")
        programs[kind] = compile_program(kind, "throw", ["throw_main.cpp", plain])
    compare("throw", programs)


def case_cancelled_and_detached_threads():
    """Also constructors before main, and destructors of thread-local objects."""
    compare("endings", both("endings", ["endings.cpp"]))


def case_threads_before_constructors():
    library = compile_program("native", "libearly.so", ["early.c"], "-DLIBRARY", "-shared", "-fPIC")
    programs = both("early", ["early.c", library], "-rdynamic", f"-Wl,-rpath,{library.parent}")
    for _ in range(5):
        traced = compare("early", programs)
        expect(traced.accesses >= 8 * 40_000, f"only {traced.accesses} accesses: not all that the threads did")


def case_threads_cancelled_at_any_instruction():
    programs = both("endings", ["endings.cpp"])
    expected = run([programs["native"], "anywhere"]).stdout
    for _ in range(8):
        traced = Run("endings-anywhere", [programs["memlode"], "anywhere"])
        expect(traced.stdout == expected, f"output differs: {traced.done}")
        # What a thread did since its last call may be lost, and is then told; what is there is right.
        traced.check_sound(["segments were discarded", "no known module", "no instrumented image"])
        traced.check_addresses()


def parts(kinds, kind):
    """Libraries first → middle → last, and second; `kinds` tells who builds which."""
    directory = f"-Wl,-rpath,{WORK}"
    libraries = []
    for name, array, following in (
        ("last", "in_last", None),
        ("middle", "in_middle", "last"),
        ("first", "in_first", "middle"),
        ("second", "in_second", None),
    ):
        flags = ["-shared", "-fPIC", f"-DNAME={name}", f"-DARRAY={array}"]
        if following:
            flags += [f"-DNEXT={following}", "-L", str(WORK / kind), f"-l{following}"]
        who = "native" if kind == "native" else kinds.get(name, "memlode")
        built = compile_program(who, f"lib{name}.so", ["part.c"], *flags, directory)
        if who != kind:
            shutil.copy(built, WORK / kind / built.name)
        libraries.append(WORK / kind / built.name)
    return libraries


def linked_parts(name, kinds):
    programs = {}
    for kind in KINDS:
        libraries = parts(kinds, kind)
        who = "native" if kind == "native" else kinds.get("main", "memlode")
        flags = ["-L", WORK / kind, "-lfirst", "-lsecond", f"-Wl,-rpath,{WORK / kind}", "-Wl,-rpath-link", WORK / kind]
        built = compile_program(who, f"{name}-{kind}", ["parts_main.c"], *map(str, flags))
        programs[kind] = built
        expect(all(library.exists() for library in libraries), "a library is missing")
    return programs


def library_run(name, kinds, silent, plain):
    programs = linked_parts(name, kinds)
    native = {"LD_LIBRARY_PATH": str(WORK / "native")}
    expected = run([programs["native"]], native)
    traced = Run(name, [programs["memlode"]], environment={"LD_LIBRARY_PATH": str(WORK / "memlode")})
    expect(traced.stdout == expected.stdout and traced.status == expected.returncode, "it behaves differently")
    traced.check_whole()
    try:
        found = traced.check_addresses()
    except Failure as failure:
        expect(f"no access recorded of {silent}" in str(failure), str(failure))
    else:
        raise Failure(f"plain code is recorded: {found}")
    said = f"loaded and not recorded, as memlode did not build it: {', '.join(plain)}\n"
    report = run([MEMLODE, "report", "--machine", "generic", traced.directory]).stdout
    expect(said in " ".join(report.replace("\n ", " ").split(" ")), f"{said!r} is not in\n{report}")


def case_a_plain_library_between_instrumented_ones():
    library_run("between", {"middle": "native"}, ["in_middle"], ["libmiddle.so"])


def case_instrumented_libraries_and_a_plain_main():
    plain = ["libmiddle.so", "plain-main-memlode"]
    library_run("plain-main", {"main": "native", "middle": "native"}, ["answers", "in_middle"], plain)


def case_straight_line_code_longer_than_the_slack():
    count = 20_000
    source = WORK / "straight.c"
    lines = [f"  c[{i * 7919 % 32768}] += c[{i * 104729 % 32768}] ^ {i}u;" for i in range(count)]
    source.write_text(
        '#include "objects.h"\nunsigned cells[32768];\n'
        "__attribute__((noinline)) static void straight(volatile unsigned *c) {\n"
        + "\n".join(lines)
        + '\n}\nint main(void) {\n  OBJECT(cells);\n  for (int i = 0; i < 20; i++) straight(cells);\n'
        "  unsigned sum = 0;\n  for (int i = 0; i < 32768; i++) sum = sum * 3 + cells[i];\n"
        '  printf("%u\\n", sum);\n  return 0;\n}\n'
    )
    traced = compare("straight", both("straight", [source]))
    expect(traced.accesses >= 20 * 3 * count, f"only {traced.accesses} accesses")


def limited(limit):
    """memlode itself runs without the limit: it is set between it and the program."""
    return ["bash", "-c", f'ulimit {limit} && exec "$0" "$@"']


def case_limits():
    programs = both("work", ["work.c"])
    deep = both("deep", ["deep.c"])
    for name, limit, program, arguments in (
        ("address-space", "-v 2000000", programs, []),
        ("little-address-space", "-v 120000", programs, ["single"]),
        ("descriptors", "-n 3", programs, ["single"]),
        ("two-more-descriptors", "-n 5", deep, []),
        ("stack", "-s 256", deep, []),
        ("processes", "-u 1", programs, ["single"]),
        ("file-size", "-f 0", programs, ["single"]),
        ("core", "-c 0 -l 0", programs, []),
    ):
        if name == "descriptors":  # the loader needs a fourth one itself
            program = both("work-static", ["work.c"], "-static")
        native = run([*limited(limit), program["native"], *arguments])
        traced = Run(f"limit-{name}", [*limited(limit), program["memlode"], *arguments])
        expect(native.returncode == 0, f"{limit} is too little for the program itself: {native}")
        same = (traced.stdout, traced.status) == (native.stdout, native.returncode)
        expect(same, f"{limit}: {native} natively, now {traced.done}")
        traced.check_whole()
        traced.check_addresses()


def case_programs_with_more_rights_than_their_user():
    """They do not take orders from their environment: they run, unrecorded."""
    if os.geteuid() != 0:
        return print("  (needs root: skipped)")
    program = both("work", ["work.c"])["memlode"]
    owned = pathlib.Path("/tmp") / f"memlode-safety-{os.getpid()}"  # the other user may not enter target/
    owned.mkdir()
    try:
        copy = shutil.copy(compile_program("memlode", "work-static", ["work.c"], "-static"), owned / "program")
        os.chown(copy, 65534, 65534)
        os.chmod(copy, 0o4755)
        traced = Run("setuid", [copy, "single"])
        traced.check_unrecorded(run([program, "single"]).stdout)
    finally:
        shutil.rmtree(owned)


def jail_with(program):
    """A root with one program in it."""
    jail = WORK / "jail"
    jail.mkdir(exist_ok=True)
    shutil.copy(program, jail / "program")
    return jail


def case_programs_that_close_the_way_to_memlode():
    """Their children are recorded all the same; or it is told how many are not."""
    programs = both("reach", ["reach.c"], "-static")
    jail = jail_with(programs["memlode"])
    ways = [["descriptors"], ["environment"]]
    if os.geteuid() == 0:
        ways += [["user"], ["root", jail]]
    for way in ways:
        traced = compare(f"reach-{way[0]}", programs, *way)
        told = f"{traced.accesses} accesses of {len(traced.processes())} processes"
        expect(traced.accesses >= 2 * 302_000 and len(traced.processes()) == 4, f"{way}: {told}")
    if os.geteuid() != 0:
        return print("  (the rest needs root: skipped)")
    traced = Run("reach-alone", [programs["memlode"], "alone", jail])
    notes = " ".join(traced.summary["notes"])
    expect("3 processes that process" in notes and "did not find memlode" in notes, f"not told: {notes}")
    return None


def case_programs_that_do_not_see_where_memlode_is():
    """Their environment is empty, or they are in another root: they find it among their ancestors."""
    program = both("work-static", ["work.c"], "-static")["memlode"]
    expected = run([program, "single"]).stdout
    ways = {"environment": ["env", "-i", program]}
    if os.geteuid() == 0:
        ways["root"] = ["chroot", jail_with(program), "/program"]
    for way, command in ways.items():
        traced = Run(f"unseen-{way}", [*command, "single"])
        expect(traced.stdout == expected and traced.status == 0, f"{way}: {traced.done}")
        traced.check_whole()
        traced.check_addresses()
    # Nobody is asked who is not memlode, and nobody else is recorded.
    expect(run(["env", "-i", program, "single"]).stdout == expected, "it does not run by itself")


def case_a_library_in_a_name_space_of_its_own():
    programs = {}
    for kind in KINDS:
        flags = ["-shared", "-fPIC", "-DNAME=part", "-DARRAY=in_part"]
        library = compile_program(kind, "libpart.so", ["part.c"], *flags)
        programs[kind] = compile_program(kind, "apart", ["apart.c"], f'-DLIBRARY="{library}"')
    expected = run([programs["native"], WORK / "native" / "libpart.so"])
    traced = Run("apart", [programs["memlode"], WORK / "memlode" / "libpart.so"])
    expect((traced.stdout, traced.status) == (expected.stdout, 0), f"{expected} natively, {traced.done}")
    traced.check_whole()
    found = traced.check_addresses()
    counts = {"outside": 2 * (100 + 4000) * 50, "in_part": 4000 * (2 * 64 + 1)}
    for array, least in counts.items():
        expect(found[array] >= least, f"{found[array]} accesses of {array}, not {least}")
    threads = len(traced.manifest["threads"])
    expect(threads == 2, f"{threads} threads: those of the two copies are not one")


def case_programs_that_forbid_themselves_system_calls():
    for flags in ([], ["-static"]):
        programs = both("sealed" + "".join(flags), ["sealed.c"], *flags)
        for way in ("strict", "filter", "syscall", "threads"):
            native = run([programs["native"], way])
            traced = Run(f"sealed-{way}", [programs["memlode"], way])
            same = (traced.stdout, traced.status) == (native.stdout, native.returncode)
            expect(same and "sealed" in native.stdout, f"{way}: {native} natively, now {traced.done}")
            traced.check_sound(["forbade itself system calls"])
            expect(any("forbade itself" in note for note in traced.summary.get("notes", [])), f"{way}: not told")
            expect(traced.accesses >= 2 * 3000, f"{way}: {traced.accesses} accesses")
        # Who only asks what there is goes on being recorded.
        traced = compare("sealed-probe", programs, "probe")
        expect(traced.accesses >= 3 * 101_000, f"probe: {traced.accesses} accesses")


def case_calls_that_the_compiler_makes():
    """For thread-local data of a plug-in, which the loader has memory for from the program's own malloc."""
    programs = both("heap", ["heap.c"])
    plugins = both("heap-plugin.so", ["heap.c"], "-DPLUGIN", "-shared", "-fPIC")
    native = run([programs["native"], plugins["native"]])
    traced = Run("heap", [programs["memlode"], plugins["memlode"]])
    expect((traced.stdout, traced.status) == (native.stdout, 0), f"{native} natively, now {traced.done}")
    traced.check_whole()
    found = traced.check_addresses()
    expect(found["shared"] == 80 * 10, f"{found['shared']} accesses of shared, not 800")


# Options that add calls behind the pass or in front of it, none of which is in the source.
CALLING = [
    [],
    ["-pg"],
    ["-fxray-instrument", "-fxray-instruction-threshold=1"],
    ["-fstack-protector-all"],
    ["-finstrument-functions"],
    ["-finstrument-functions-after-inlining"],
    ["-fsanitize-coverage=func,trace-pc-guard"],
    ["-fsanitize-coverage=edge,trace-pc-guard", "-fstack-protector-all", "-finstrument-functions"],
]


def case_calls_that_options_add():
    """Of hooks that are recorded, and of what unwinding runs: each of their accesses is there, and no other."""
    hooked = {}
    for flags in CALLING:
        name = "called" + "".join(flags)
        traced = compare(name, both(name, ["called.cpp"], *flags))
        touched = int(re.search(r"touched (\d+) times", traced.stdout)[1])
        found = traced.check_addresses()["touched"]
        # Each is a load and a store; then all eight are read.
        expect(found == 2 * touched + 8, f"{name}: {found} accesses, not those of {touched} updates and 8 loads")
        hooked[name] = touched
    plain = hooked.pop("called")
    more = {name for name, touched in hooked.items() if touched > plain}
    expect(len(more) == 4, f"hooks were called in {sorted(more)} only")


def case_thread_local_data_by_calls():
    """Where each access to the cursor would be a call, it is refused, in a sentence."""
    source = HERE / "called.cpp"
    done = run([MEMLODE, "c++", *FLAGS, "-femulated-tls", "-c", source, "-o", "emulated.o"])
    expect(done.returncode != 0 and "-femulated-tls: what memlode records" in done.stderr, f"not refused: {done}")


def case_hooks_that_are_called_too_late():
    """As the program is written, accesses are found before calls of hooks are added: that is refused, in a sentence."""
    hooks = "-fsanitize-coverage=func,trace-pc-guard"
    done = run([MEMLODE, "c++", "--fidelity=source", *FLAGS, hooks, "-c", HERE / "called.cpp", "-o", "late.o"])
    expect(done.returncode != 0 and "leave one of the two out" in done.stderr, f"not refused: {done}")
    expect(len(done.stderr.splitlines()) == 1, f"more than a sentence: {done.stderr}")


def case_functions_that_are_chosen_at_the_start():
    for flags in ([], ["-static"], ["-static-pie"], ["-no-pie", "-DEARLY"], ["-DEARLY"], ["-static", "-DEARLY"]):
        programs = both("resolved" + "".join(flags), ["resolved.c"], *flags)
        traced = compare("resolved", programs, 30_000)
        expect(len(traced.manifest["threads"]) == 1, f"{flags}: {traced.manifest['threads']}")
        expect(traced.accesses >= 30_000 + 3, f"{flags}: {traced.accesses} accesses")
        expect(run([programs["memlode"], 5]).stdout == run([programs["native"], 5]).stdout, f"{flags}: by itself")


def case_programs_that_hold_the_runtime():
    """They run where memlode is not, and what they load finds the one runtime in them."""
    away = WORK / "away"
    away.mkdir(exist_ok=True)
    for way in ("nested", "jump"):
        held = compile_program("embedded", "storm", ["storm.c"])
        programs = {"native": compile_program("native", "storm", ["storm.c"])}
        programs["memlode"] = pathlib.Path(shutil.copy(held, away / "storm"))
        needed = run(["readelf", "-d", held]).stdout
        expect("memlode" not in needed, f"it needs memlode's library, or looks for it: {needed}")
        compare(f"embedded-{way}", programs, way, torn=100_000 if way == "jump" else 0)
    # Without the option it says what is missing, and how to do without.
    home = WORK / "home"
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(MEMLODE.parent.parent / "lib", home / "lib", symlinks=True)
    lost = WORK / "lost"
    done = run([MEMLODE, "cc", HERE / "work.c", "-pthread", "-o", lost], {"MEMLODE_HOME": str(home)})
    expect(done.returncode == 0, f"it does not compile: {done}")
    shutil.rmtree(home)
    traced = Run("lost", [lost])
    said = "libmemlode_record.so.1 is not found" in traced.done.stderr and "--static-runtime" in traced.done.stderr
    expect(said and traced.status == 127, f"that goes unsaid: {traced.done}")
    # Two libraries, one of which needs the shared runtime, loaded into such a program.
    program = compile_program("embedded", "heap", ["heap.c"])
    for kind in ("embedded", "memlode"):
        plugin = compile_program(kind, "heap-plugin.so", ["heap.c"], "-DPLUGIN", "-shared", "-fPIC")
        traced = Run("embedded-heap", [program, plugin])
        expect(traced.status == 0, f"{kind}: {traced.done}")
        traced.check_whole()
        found = traced.check_addresses()
        told = f"{found}, {len(traced.processes())} processes"
        expect(found["shared"] == 800 and len(traced.processes()) == 1, f"{kind}: {told}")


def case_lengths_out_of_nowhere():
    """The program is killed in what it does last; all before counts, and nothing costs what it only promised."""
    programs = both("last", ["last.c"])
    for what in ("fill", "copy", "loop"):
        # By which way libc copies, and so whether a length that wraps is a fault, depends on where things lie.
        wraps = 1 << 63 if what == "copy" else (1 << 64) - 8
        for amount in (0, 1 << 36, 1 << 50, wraps):
            if not amount and what != "loop":
                continue
            traced = compare("last", programs, what, amount, torn=1, unfinished=1)
            expect(2000 <= traced.accesses <= 2020, f"{what} {amount}: {traced.accesses} accesses")
            size = sum(file.stat().st_size for file in traced.directory.rglob("*"))
            expect(size < 200_000, f"{what} {amount}: {size} bytes")
            report = run([MEMLODE, "report", traced.directory], timeout=120)
            expect(report.returncode == 0, f"{what} {amount}: {report}")


def case_threads_that_end_with_a_zero():
    for flags in ([], ["-static"]):
        programs = both("last" + "".join(flags), ["last.c"], *flags)
        for freed in (0, 10):
            traced = compare("last", programs, "threads", freed)
            expect(traced.accesses >= 200 * 3, f"{traced.accesses} accesses")
        # A process that ends by itself has done what it did last.
        events = (traced.directory / "events.ndjson").read_text()
        expect('"clean":true' in events, f"{flags}: its end is not known")


def case_processes_that_become_another_program_with_a_zero():
    for flags in ([], ["-static"]):
        programs = both("last" + "".join(flags), ["last.c"], *flags)
        traced = compare("last", programs, "exec", 0)
        expect(traced.stdout.startswith("63 "), f"{flags}: {traced.stdout}")
        # Each of nine children reads and writes a cell, and reads what it frees.
        expect(traced.accesses >= 9 * 3, f"{flags}: {traced.accesses} accesses")


def case_two_tasks_on_one_memory():
    """They share the cursor, too: neither is recorded while both run, which is told, and nothing is mixed up."""
    for flags in ([], ["-static"]):
        programs = both("tasks" + "".join(flags), ["tasks.c"], *flags)
        for rounds in (1000, 3_000_000):
            native = run([programs["native"], rounds])
            traced = Run("tasks", [programs["memlode"], rounds])
            expect((traced.stdout, traced.status) == (native.stdout, 0), f"{native} natively, {traced.done}")
            traced.check_sound(["share its memory and are no threads"])
            notes = " ".join(traced.summary.get("notes", []))
            expect("made 1 tasks that share its memory" in notes, f"that goes unsaid: {traced.summary}")
            expect("share its memory" in traced.done.stderr, f"record does not repeat it: {traced.done.stderr}")
            low, high = traced.objects()["later"]
            dump = run([MEMLODE, "dump", traced.directory]).stdout.splitlines()
            rows = (line.split("\t") for line in dump[1:])
            found = sum(low <= int(address, 16) < high for _, _, kind, address, *_ in rows if kind in ("load", "store"))
            expect(found == 2000, f"{found} accesses when one was alone again")


def case_a_loop_that_is_under_way_at_the_end():
    """It is one record: of its accesses no more count than time allowed, and it is told."""
    program = compile_program("memlode", "flight", ["flight.c"])
    traced = Run("flight", [program])
    expect((traced.stdout, traced.status) == ("left\n", 0), traced.done)
    expect(traced.accesses < 3_000_000_000, f"{traced.accesses} accesses")
    expect(traced.summary.get("unfinished") == 1, f"that goes unsaid: {traced.summary}")
    expect("had been begun last" in traced.done.stderr, f"record does not repeat it: {traced.done.stderr}")


def case_programs_of_another_user():
    """What root's program does is not told to the user who records what started it."""
    if os.geteuid() != 0:
        return print("  (needs root: skipped)")
    user = 65533
    place = pathlib.Path("/tmp") / f"memlode-safety-users-{os.getpid()}"  # the user may not enter target/
    place.mkdir()
    try:
        program = shutil.copy(compile_program("memlode", "users", ["users.c"], "-static"), place / "users")
        elevate = shutil.copy(program, place / "elevate")
        os.chmod(elevate, 0o4755)
        tool = shutil.copy(MEMLODE, place / "memlode")
        os.chown(place, user, user)
        become = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]
        trace = place / "trace"
        done = run([*become, tool, "record", "-o", trace, "--", program, "start", elevate], {"TMPDIR": str(place)})
        expect("work as 0: 0" in done.stdout and done.returncode == 0, f"the programs failed: {done}")
        events = (trace / "events.ndjson").read_text().splitlines()
        starts = [event for event in map(json.loads, events) if event["event"] == "process_start"]
        told = [start["command"] for start in starts]
        expect(all("work" not in command for command in told), f"root's program was recorded: {told}")
        expect("runs as another user (user id 0)" in done.stderr, f"that goes unsaid: {done.stderr}")
    finally:
        shutil.rmtree(place)
    return None


def case_a_full_disk():
    """That is what is said, by record and by check; nothing is said of threads that were killed."""
    if os.geteuid() != 0:
        return print("  (needs root: skipped)")
    program = compile_program("memlode", "scattered", ["scattered.c"])
    disk = WORK / "disk"
    disk.mkdir(exist_ok=True)
    # A page more or less decides which file finds no room, and whether a chunk ends with the last page.
    for size in [64, *range(200, 256, 4)]:
        script = f"""mount -t tmpfs -o size={size}k none {disk} &&
            {MEMLODE} record -o {disk}/trace -- {program}; {MEMLODE} check {disk}/trace; umount {disk}"""
        done = run(["unshare", "-m", "sh", "-c", script])
        expect("No space left on device" in done.stderr, f"record does not say so: {done}")
        expect("No space left on device" in done.stdout, f"check does not say so: {done}")
        expect("killed" not in done.stdout, f"check says something else: {done.stdout}")
    return None


def case_other_allocators():
    programs = both("work", ["work.c"])
    for name, library in ALLOCATORS.items():
        path = pathlib.Path(f"/usr/lib/{os.uname().machine}-linux-gnu") / library
        expect(path.exists(), f"{path} is missing: `make setup` installs it")
        preload = ["env", f"LD_PRELOAD={path}"]
        native = run([*preload, programs["native"]])
        traced = Run(f"work-{name}", [*preload, programs["memlode"]])
        expect((traced.stdout, traced.status) == (native.stdout, native.returncode), f"{name}: {traced.done}")
        traced.check_whole()
        traced.check_addresses()


def case_static_programs():
    for flags in (["-static"], ["-static-pie"], ["-no-pie"]):
        compare("work" + flags[0], both("work" + flags[0], ["work.c"], *flags))


def case_sanitizers():
    for sanitizer in ("address", "undefined"):
        programs = both(f"overflow-{sanitizer}", ["overflow.c"], "-g", f"-fsanitize={sanitizer}")
        compare(f"overflow-{sanitizer}", programs)
        # Not by siglongjmp from an alternate stack: AddressSanitizer itself is confused by that.
        programs = both(f"storm-{sanitizer}", ["storm.c"], f"-fsanitize={sanitizer}")
        compare(f"storm-{sanitizer}", programs, "nested")
    programs = both("overflow-address", ["overflow.c"], "-g", "-fsanitize=address")
    for program in (run([programs["native"], "more"]), Run("overflow-found", [programs["memlode"], "more"]).done):
        expect("heap-buffer-overflow" in program.stderr, "AddressSanitizer overlooked an overflow")
        expect(program.returncode == 1, f"status {program.returncode}")


def main(names):
    named = {**globals(), **vars(unchanged)}
    cases = {name[5:]: case for name, case in named.items() if name.startswith("case_")}
    unknown = [name for name in names if name not in cases]
    if unknown:
        sys.exit(f"safety.py: no case called {unknown}; there are {', '.join(cases)}")
    WORK.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in names or cases:
        try:
            cases[name]()
            print(f"  {name}: ok", flush=True)
        except (Failure, subprocess.TimeoutExpired) as failure:
            failed.append(name)
            print(f"  {name}: FAILED\n    {failure}", flush=True)
    print(f"safety: {len(names or cases) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
