"""What the machine code of a recorded run did to the program's data, as Valgrind's lackey saw it, against the trace.

Lackey prints every load and store that the processor makes, with the instruction that makes it. It is told of nothing
and knows neither LLVM nor us, so an access that the pass never found is missing in the trace alone. Both are of one
process: the collector records a program that runs inside Valgrind.

Compared are the bytes of the program's own variables (a copy for each thread where they are a thread's own) and of
its heap, reads and writes apart, summed over threads. Valgrind leaves out prefetches, and so does this. For each
byte, `recorded` counts the events that contain it, `own` the accesses that instructions of the program make, `others`
those of code that was not compiled by memlode, libc's above all. Then

    own <= recorded                  nothing was lost, and
    recorded <= own + others         nothing was made up: what libc's functions look at is recorded by their callers.

A code generator drops, merges, narrows and widens accesses, so the IR that the pass leaves, optimised or not, is made
volatile before code is generated. What is made more often all the same is known: an atomic operation may be a load and
a loop of compare-and-swap, and a copy, fill or comparison of a size that no register has may be made of pieces that
overlap. The second law needs a build that is `faithful` "once", of a code generator that does not optimise. A link that
optimises gets IR that is not volatile: what it reads must overlap something that was recorded, what it writes is
compared as above. What others write to variables that all threads share must have been recorded.

Not compared are frames, where spills are, constants, how often qsort moves what it sorts, and the order (which fuzz.py
compares with the calls).
"""

import bisect
import collections
import json
import os
import shutil
import subprocess

from build import HOME, MEMLODE, ROOT, Failure, call

# Programs that make more are not run in Valgrind, for time.
MOST_ACCESSES = 250_000
WAYS = {"load": (0,), "store": (1,), "update": (0, 1)}
# One heap that only grows, so that one range holds all blocks.
TUNABLES = "glibc.malloc.arena_max=1:glibc.malloc.trim_threshold=4294967296:glibc.malloc.mmap_threshold=4294967296"
# Sizes of accesses that are one instruction.
WHOLE = frozenset((1, 2, 4, 8, 16, 32))
SURROUNDINGS = """\
#define _GNU_SOURCE
#include "fuzz.h"
#include <fcntl.h>
#include <link.h>
#include <unistd.h>
static int out = -1;
static pid_t first;
static void *heap;
static int each_module(struct dl_phdr_info *module, size_t size, void *unused) {
  const char *name = module->dlpi_name;
  if (*name && !strstr(name, getenv("FUZZ_OWN_CODE")))
    return 0;
  for (int i = 0; i < module->dlpi_phnum; ++i)
    if (module->dlpi_phdr[i].p_type == PT_LOAD && (module->dlpi_phdr[i].p_flags & PF_X))
      dprintf(out, "code %lx %lx -\\n", (long)(module->dlpi_addr + module->dlpi_phdr[i].p_vaddr),
              (long)module->dlpi_phdr[i].p_memsz);
  return 0;
}
__attribute__((constructor(101))) static void begin(void) {
  out = open(getenv("FUZZ_OWNED"), O_WRONLY | O_CREAT | O_APPEND, 0600);
  heap = sbrk(0);
  first = getpid();
  dl_iterate_phdr(each_module, 0);
}
__attribute__((destructor(101))) static void end(void) {
  if (getpid() != first)
    return;
  dprintf(out, "heap %lx %lx heap\\n", (long)heap, (long)((char *)sbrk(0) - (char *)heap));
}
#ifdef __cplusplus
extern "C"
#endif
void owned(void) {
#define SAY(kind, name) dprintf(out, #kind " %lx %lx " #name "\\n", (long)&name, (long)sizeof name);
"""


def surroundings(program):
    """The unit that says where the program's code and data lie."""
    lines = "".join(f"  SAY({kind}, {name})\n" for kind, name in program.variables)
    return f"{SURROUNDINGS}{lines}}}\n"


class Ranges:
    """Disjoint ranges of addresses, each with a name."""

    def __init__(self, found):
        self.ranges = sorted(set(found))
        self.starts = [start for start, _, _ in self.ranges]

    def of(self, address):
        """The range that contains the address, or None."""
        at = bisect.bisect_right(self.starts, address) - 1
        return self.ranges[at] if at >= 0 and address < self.ranges[at][0] + self.ranges[at][1] else None


def by_byte(accesses, owned):
    """Counts of bytes that are owned, from those of accesses."""
    found = collections.Counter()
    for (address, size), times in accesses.items():
        for byte in range(address, address + size):
            if owned.of(byte):
                found[byte] += times
    return found


class Side:
    """How often each access was made to data that is compared, by (address, bytes), reads and writes apart."""

    def __init__(self):
        self.accesses = collections.Counter(), collections.Counter()
        self.updates = collections.Counter()
        self.about = collections.Counter(), collections.Counter()

    def more(self):
        """What a code generator may add to what was recorded."""
        found = Side()
        found.accesses[0].update(self.updates)
        for mine, added in zip(self.accesses, found.accesses):
            added.update({access: times for access, times in mine.items() if access[1] not in WHOLE})
        # Vectors that are put together of others are loaded anew, in pieces that overlap (EltsFromConsecutiveLoads of
        # LLVM's for x86): a word up to three times.
        found.accesses[0].update({access: times * 2 for access, times in self.accesses[0].items() if access[1] >= 16})
        return found

    def by_byte(self, way, owned):
        """The same for each byte of what is owned."""
        return by_byte(self.accesses[way], owned)


def stripped(file, out):
    """Valgrind stops at debug information newer than itself."""
    call("strip", ["objcopy", "-g", file, out])
    return out


def run(program, expected):
    """Records a run inside of Valgrind; lackey's files by process, the program's own, and the trace."""
    work = program.parent
    home = work / "bare"
    home.mkdir()
    stripped(HOME / "lib/libmemlode_record.so.1", home / "libmemlode_record.so.1")
    stripped(program, home / program.name)
    for own in (program.with_name(f"lib{program.name}.so"), program.with_name(f"{program.name}.plug-in.so")):
        if own.exists():
            stripped(own, own)
            shutil.copy(own, home)
    owned, trace = work / "owned", work / "valgrind-trace"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMLODE_")}
    environment |= {"FUZZ_OWNED": str(owned), "FUZZ_OWN_CODE": program.name, "FUZZ_CHILDREN": "1",
                    "LD_LIBRARY_PATH": str(home), "GLIBC_TUNABLES": TUNABLES, "MEMLODE_HOME": str(HOME)}
    words = [MEMLODE, "record", "--force", "-o", trace, "--", "valgrind", "--tool=lackey", "--trace-mem=yes",
             # Else Valgrind itself leaves out loads whose values are not used.
             "--vex-iropt-level=0",
             "--main-stacksize=67108864", f"--log-file={work}/lackey.%p", home / program.name]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False, env=environment)
    except subprocess.TimeoutExpired:
        raise Failure("machine code", "takes more than 300 s") from None
    if (done.returncode, done.stdout) != expected:
        raise Failure("machine code: run", f"exit status {done.returncode}, expected {expected}; prints\n"
                                           f"{done.stdout[:500]}\n{done.stderr[-1500:]}")
    return {int(file.suffix[1:]): file for file in work.glob("lackey.*")}, owned, trace


def processes(trace):
    """Number and process id of each process that was recorded."""
    events = map(json.loads, (trace / "events.ndjson").read_text().splitlines())
    return {str(event["process"]): event["pid"] for event in events if event["event"] == "process_start"}


def read_owned(file):
    """Own code, and the data that is compared."""
    found = collections.defaultdict(list)
    for line in file.read_text().splitlines():
        kind, start, size, name = line.split()
        found[kind == "code"].append((int(start, 16), int(size, 16), f"{kind} {name}"))
    return Ranges(found[True]), Ranges(found[False])


def read_machine(file, code, owned):
    """What own instructions did, what others did, and by which of the own ones."""
    own, others, by = Side(), Side(), collections.defaultdict(set)
    low = owned.ranges[0][0]
    high = max(start + size for start, size, _ in owned.ranges)
    kinds = {" L": (0,), " S": (1,), " M": (0, 1)}
    instruction = before = ""
    with file.open(errors="replace") as lines:
        for line in lines:
            kind = line[:2]
            if kind == "I ":
                instruction = line
            elif kind in kinds:
                address, _, size = line[3:].partition(",")
                where = int(address, 16)
                if not low <= where < high or not owned.of(where):
                    continue
                at = int(instruction[3:].partition(",")[0], 16)
                mine = code.of(at) is not None
                for way in kinds[kind]:
                    (own if mine else others).accesses[way][where, int(size)] += 1
                    if mine:
                        by[where].add(at)
                # Valgrind makes a load and a compare-and-swap of an instruction with a lock.
                if kind == " M" and before == f" L{line[2:]}":
                    (own if mine else others).accesses[0][where, int(size)] -= 1
            before = line
    return own, others, by


def read_trace(trace, owned, about):
    """By process, what was recorded, and at which lines; at those of `about`, a library function is recorded
    approximately."""
    found = {pid: (Side(), collections.defaultdict(set)) for pid in processes(trace).values()}
    by_number = {number: found[pid] for number, pid in processes(trace).items()}
    dump = subprocess.Popen([MEMLODE, "dump", trace], stdout=subprocess.PIPE, text=True)
    before = None
    for line in dump.stdout:
        thread, _, kind, address, size, place, function, _ = line.split("\t", 7)
        if kind not in WAYS:
            continue
        where, size = int(address, 16), int(size)
        # glibc copies nothing from an object to itself, if that is larger than eight vectors.
        is_copy_of_itself = size > 128 and before == ("load", thread, where, size, place)
        before = kind, thread, where, size, place
        if owned.of(where):
            side, lines = by_number[thread.partition(".")[0]]
            lines[where, size].add(f"{kind} at {place} in {function}")
            for way in WAYS[kind] if os.path.basename(place.rpartition(":")[0]) in about else ():
                side.about[way][where, size] += 1
            if kind == "store" and is_copy_of_itself:
                side.about[0][where, size] += 1
                side.about[1][where, size] += 1
            side.updates[where, size] += kind == "update"
            for way in WAYS[kind]:
                side.accesses[way][where, size] += 1
    if dump.wait() != 0:
        raise Failure("machine code: dump", f"exit status {dump.returncode}")
    return found


def differences(owned, recorded, own, others, faithful):
    """What is wrong: (byte, sentence)."""
    for way, does in enumerate(("read", "written")):
        said, done, else_done, more = (side.by_byte(way, owned) for side in (recorded, own, others, recorded.more()))
        if faithful or way == 1:
            for byte, times in done.items():
                if times > said[byte] + more[byte]:
                    yield byte, f"{does} {times} times by the program, recorded {said[byte]} times"
        else:
            for address, size in own.accesses[way]:
                if not any(said[byte] for byte in range(address, address + size)):
                    yield address, f"{does} with {size} bytes by the program, never recorded"
        about = by_byte(recorded.about[way], owned)
        for byte, times in said.items():
            if faithful == "once" and times - about[byte] > done[byte] + else_done[byte]:
                yield byte, (f"{does} {done[byte]} times by the program and {else_done[byte]} times by others, "
                             f"recorded {times} times")
        if way == 1:
            for byte in else_done:
                if not said[byte] and owned.of(byte)[2].startswith("global"):
                    yield byte, "written by others, and not recorded"


def lines_with(word, sources):
    """`FILE:LINE` of each line of the sources that has the word."""
    return {f"{file.name}:{number}" for file in sources for number, line in enumerate(file.read_text().splitlines(), 1)
            if word in line}


def compare(program, sources, expected, faithful):
    """Raises Failure unless the laws above hold for each process."""
    machine, said, trace = run(program, expected)
    code, owned = read_owned(said)
    found = read_trace(trace, owned, lines_with("qsort(", sources))
    for pid, file in machine.items():
        own, others, by = read_machine(file, code, owned)
        # Who does nothing of its own is not recorded.
        recorded, lines = found.get(pid) or (Side(), {})
        wrong = list(differences(owned, recorded, own, others, faithful))
        if wrong:
            keep = ROOT / "target/fuzz/machine"
            shutil.rmtree(keep, ignore_errors=True)
            keep.mkdir(parents=True)
            for kept in (program, file, said):
                shutil.copy(kept, keep)
            raise Failure(f"machine code, {faithful}",
                          f"{len(wrong)} bytes differ in process {pid} ({keep} has lackey's account)\n"
                          + "\n".join(explained(wrong, owned, by, lines)))


def explained(wrong, owned, by, lines):
    """Lines about the first of the bytes that differ: who accesses them, as far as known."""
    for byte, sentence in sorted(wrong)[:6]:
        start, _, name = owned.of(byte)
        near = sorted({at for where in range(byte - 31, byte + 1) for at in by.get(where, ())})
        yield f"{name}+{byte - start} ({byte:#x}): {sentence}; instructions {', '.join(map(hex, near[:4])) or 'none'}"
        yield from sorted({text for (address, size), known in lines.items() if address <= byte < address + size
                           for text in known})[:4]
