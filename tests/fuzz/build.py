"""How a program is compiled: options drawn from its seed, natively and with memlode."""

import os
import pathlib
import platform
import random
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = pathlib.Path(os.environ.get("MEMLODE_HOME") or ROOT / "target/memlode")
MEMLODE = HOME / "bin/memlode"
TABLES = ROOT / "instrument/test/Inputs"
HELPERS = {"recorder": TABLES / "recorder.cpp", "oracle": ROOT / "tests/fuzz/oracle.cpp",
           "libc_blocks": ROOT / "record/src/libc_blocks.c"}


class Failure(Exception):
    """A program that behaves as it must not; `stage` names the first thing that differed."""

    def __init__(self, stage, detail):
        super().__init__(f"{stage}: {detail}")
        self.stage, self.detail = stage, detail


def call(stage, arguments, seconds=600, **options):
    """Runs a command that has to succeed."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, errors="replace", timeout=seconds, check=False,
                              **options)
    except subprocess.TimeoutExpired:
        raise Failure(stage, f"takes more than {seconds} s: {' '.join(map(str, arguments))}") from None
    if done.returncode != 0:
        raise Failure(stage, f"exit status {done.returncode}: {' '.join(map(str, arguments))}\n{done.stderr[-2000:]}")
    return done


def helper(name):
    """The object of one of the libraries that programs are linked with, compiled when its source is newer."""
    source, out = HELPERS[name], ROOT / f"target/fuzz/{name}.o"
    needed = [source, TABLES / "tables.h", ROOT / "format/generated/memlode_format.h"]
    if not out.exists() or out.stat().st_mtime < max(file.stat().st_mtime for file in needed):
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = out.with_suffix(f".{os.getpid()}.o")
        # A caller with AVX counts on whole vectors behind a call that preserves all registers: the callee must know of
        # them, and not clear their upper halves before it returns.
        vectors = ["-mavx", "-mno-vzeroupper"] if platform.machine() == "x86_64" else []
        compiler = ["clang++-22", "-std=c++17"] if source.suffix == ".cpp" else ["clang-22", "-std=gnu11"]
        call(f"helper {name}", [*compiler, "-O2", "-fPIC", *vectors, f"-I{ROOT}/format/generated",
                                f"-I{ROOT}/record/include", f"-I{TABLES}", "-c", source, "-o", partial])
        partial.rename(out)
    return out


def volatile(ir):
    """The same module, but that no code generator may drop, merge, narrow or overlap its accesses."""
    ir = re.sub(r"^( *(?:%\S+ = )?(?:load|store)(?: atomic)?) ", r"\1 volatile ", ir, flags=re.MULTILINE)
    ir = ir.replace("volatile volatile", "volatile")
    # Without optimisation LLVM may place the debug value of a phi before the label of a landing pad, and then the copy
    # that sets the phi as well: whoever lands there reads what the stack held.
    ir = re.sub(r"^ *#dbg_.*\n", "", ir, flags=re.MULTILINE)
    return re.sub(r"(@llvm\.mem(?:cpy|move|set)\.p0.*), i1 false\)", r"\1, i1 true)", ir)


class Build:
    """One choice of compiler and options."""

    def __init__(self, seed, program):
        r = random.Random(seed ^ 0x5eed)
        self.cxx, units = program.language == "c++", program.units
        self.foreign = random.Random(seed ^ 0xf0).choice(["gcc-12", "clang-22"]) if program.foreign else None
        self.version = r.choice([22, 22, 19])
        self.level = r.choice(["-O0", "-O1", "-O2", "-O2", "-O3", "-Os"])
        self.flags = [self.level, "-w", "-pthread", "-ffp-contract=off"]
        self.flags += ["-fno-strict-aliasing"] if r.random() < 0.2 else []
        self.flags += ["-mavx2", "-mtune=skylake"] if r.random() < 0.4 else []
        self.flags += ["-fno-inline"] if r.random() < 0.1 else []
        self.flags += ["-fomit-frame-pointer"] if r.random() < 0.1 else []
        self.flags += ["-fexceptions"] if r.random() < 0.2 else []
        self.flags += [r.choice(["-flto", "-flto=thin"])] if r.random() < 0.2 else []
        self.lto = any(flag.startswith("-flto") for flag in self.flags)
        self.shared = units > 1 and r.random() < 0.3
        self.flags += ["-fPIC"] if self.shared or r.random() < 0.2 else []
        self.link = []
        if not self.shared:
            self.link += r.choice([[], [], ["-no-pie"], ["-static"] if not self.lto else []])
            self.flags += ["-fno-pie"] if "-no-pie" in self.link and "-fPIC" not in self.flags else []
        if program.plug_in:
            dynamic = [option for option in self.link if option != "-static"]
            self.link = [*dynamic, "-Xlinker", "--export-dynamic", "-ldl"]
        self.fidelity = "source" if r.random() < 0.2 else "optimised"
        self.values = r.random() < 0.25
        # Whether what Valgrind runs makes each access that was recorded, once: "once", "at least" or neither. The
        # optimiser takes some away after those of a program as written have been found.
        self.faithful = r.choice(["once", "once", "at least"])
        if self.lto or (self.fidelity == "source" and self.faithful == "once"):
            self.faithful = None if self.lto else "at least"

    def __str__(self):
        return " ".join([f"clang{'++' if self.cxx else ''}-{self.version}", *self.flags, *self.link,
                         *(["(units but the first in a library)"] if self.shared else []),
                         *(["(as written)"] if self.fidelity == "source" else []),
                         *(["(with values)"] if self.values else [])])

    def native(self, sources, out):
        """The program as it is."""
        compiler = [f"clang{'++' if self.cxx else ''}-{self.version}"]
        lld = [f"-fuse-ld=lld-{self.version}"] if self.lto else []
        objects = self.compile("native compile", compiler, sources, out, os.environ)
        self.finish("native link", [*compiler, *lld], objects, out, self.link, os.environ)
        self.plug_in("native plug-in", compiler, [*compiler, *lld], sources, out, os.environ)
        return out

    def unoptimised(self, sources, out):
        """The program as it is, without optimisation."""
        compiler = [f"clang{'++' if self.cxx else ''}-{self.version}"]
        call("native compile", [*compiler, "-O0", *self.flags[1:], "-fno-lto", *sources,
                                *self.of_another_compiler(out.parent), "-o", out,
                                *(["-no-pie"] if "-fno-pie" in self.flags else []), "-lm", *self.link], 600)
        self.plug_in("native plug-in", compiler, compiler, sources, out, os.environ, ["-fno-lto"])
        return out

    def instrumented(self, sources, out):
        """The program built by memlode."""
        return self.build(sources, out, both=False)

    def comparing(self, sources, out):
        """The same, with a call for each access too: linked with the test recorder, and with the oracle."""
        return self.build(sources, out, both=True)

    def environment(self):
        """What memlode is told by variables."""
        return dict(os.environ, MEMLODE_CC=f"clang-{self.version}", MEMLODE_CXX=f"clang++-{self.version}",
                    MEMLODE_FIDELITY=self.fidelity, MEMLODE_VALUES=str(int(self.values)))

    def build(self, sources, out, both):
        environment = self.environment()
        if both:
            environment["MEMLODE_MODE"] = "both"
        compiler = [MEMLODE, "c++" if self.cxx else "cc"]
        objects = self.compile("compile", compiler, sources, out, environment)
        if not both:
            self.finish("link", compiler, objects, out, self.link, environment)
            self.plug_in("plug-in", compiler, compiler, sources, out, environment)
            return out
        # Both take the place of symbols of the run-time library, which a static one would not allow; the recorder
        # takes the place of all of it.
        link = [option for option in self.link if option != "-static"]
        recorder, oracle = out.with_name(f"{out.name}-recorder"), out.with_name(f"{out.name}-oracle")
        plain = [f"clang{'++' if self.cxx else ''}-{self.version}"]
        lld = [f"-fuse-ld=lld-{self.version}", "-Xlinker", f"--load-pass-plugin={self.plugin()}"] if self.lto else []
        lld += ["-Xlinker", "--lto-O1"] if self.lto and self.level == "-O0" else []
        libraries = ["-lstdc++", "-lm"]
        self.finish("link with the recorder", [*plain, *lld], [*objects, helper("recorder"), helper("libc_blocks")],
                    recorder, [*link, *libraries], environment)
        self.finish("link with the oracle", compiler, [*objects, helper("oracle")], oracle, [*link, *libraries],
                    environment)
        self.plug_in("plug-in with the recorder", compiler, [*plain, *lld], sources, recorder, environment)
        self.plug_in("plug-in with the oracle", compiler, compiler, sources, oracle, environment)
        return recorder, oracle

    def watched(self, sources, surroundings, out):
        """The same for Valgrind; `surroundings` are compiled without memlode."""
        environment = self.environment()
        compiler = [MEMLODE, "c++" if self.cxx else "cc"]
        plain = [f"clang{'++' if self.cxx else ''}-{self.version}"]
        text = ["-S", "-emit-llvm"] if self.faithful else []
        objects = self.compile("compile", [*compiler, *text], sources, out, environment)
        if self.faithful:
            kept = [flag for flag in self.flags if flag.startswith(("-fPIC", "-fno-pie", "-fomit", "-m"))]
            level = "-O0" if self.faithful == "once" else self.level
            for each in objects:
                ir = each.with_suffix(".ll")
                ir.write_text(volatile(each.read_text()))
                call("code generation", [*plain, level, "-w", *kept, "-Xclang", "-disable-llvm-passes", "-c", ir,
                                         "-o", each])
        outside = out.parent / "outside" / "surroundings.o"
        outside.parent.mkdir()
        call("surroundings", [*plain, "-O1", "-w", "-fPIC", "-c", surroundings, "-o", outside])
        link = [option for option in self.link if option != "-static"]
        self.finish("link for Valgrind", compiler, [*objects, outside], out, link, environment)
        self.plug_in("plug-in for Valgrind", compiler, compiler, sources, out, environment)
        return out

    def plugin(self):
        return HOME / f"lib/memlode-pass-{self.version}.so"

    def compile(self, stage, compiler, sources, out, environment):
        objects = []
        for source in sources:
            objects.append(out.with_name(f"{out.name}-{source.stem}.o"))
            call(stage, [*compiler, *self.flags, "-c", source, "-o", objects[-1]], 600, env=environment)
        return objects

    def of_another_compiler(self, folder):
        """The objects that memlode never sees."""
        if self.foreign is None:
            return []
        made = folder / "foreign" / "foreign.o"
        if not made.exists():
            made.parent.mkdir()
            call("foreign compile", [self.foreign, "-O2", "-fPIC", "-c", folder / "foreign.c", "-o", made])
        return [made]

    def plug_in(self, stage, compiler, linker, sources, out, environment, options=()):
        """The plug-in of a program that has one, beside the program."""
        for source in sources[0].parent.glob("plug-in.c*"):
            made = out.with_name(f"{out.name}.plug-in.o"), out.with_name(f"{out.name}.plug-in.so")
            common = [*self.flags, "-fPIC", *options]
            call(stage, [*compiler, *common, "-c", source, "-o", made[0]], 600, env=environment)
            call(stage, [*linker, *common, "-shared", made[0], "-o", made[1]], 600, env=environment)

    def finish(self, stage, compiler, objects, out, options, environment):
        common = [*compiler, *self.flags]
        objects = [*objects, *self.of_another_compiler(out.parent)]
        if self.shared:
            library = out.with_name(f"lib{out.name}.so")
            first, *others = objects
            inside = [each for each in others if each.parent == out.parent]
            outside = [each for each in others if each.parent != out.parent]
            call(stage, [*common, "-shared", *inside, "-o", library], 600, env=environment)
            objects = [first, library, *outside, "-Xlinker", "-rpath", "-Xlinker", out.parent]
        call(stage, [*common, *objects, *options, "-o", out], 600, env=environment)
