"""What layout does here, and whether `memlode bench` and `memlode bias` see it.

    python3 bench/bias.py [--quick] [NAME…]

  same         a program against itself, many times: how many comparisons claim a difference
  two_percent  a program against one of 2% more instructions (by Callgrind): how many comparisons find it
  layout       the same objects linked in two orders: what `bench` says of them, and `bias link` of 25 orders
  kernel       `bias env` of the loop in which this bias was first shown, by three builds
  convolve     `bias heap` of a convolution: times and what is in a call, by distance
  allocators   `bias alloc`
  pages        `bias pages`: 101,025 pairs of pages, three times
  erasure      encoders of ISA-L and of Jerasure: `bias fix`, with blocks that begin at different places beside glibc's
  dgemv        `bias heap` of cblas_dgemv, 1024 × 1024, in four libraries: y is moved by 16 bytes

Libraries are Debian's, fetched by `apt-get download` and used from target/bench/bias. Takes some 30 minutes and six,
with --quick, in which nothing is expected to be found. Nothing else should run meanwhile. Writes
target/bench/bias.json: by name the commands' own JSON, with the sentences, and the counts.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import shlex
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
PROGRAMS = ROOT / "tests" / "bias" / "programs"
WORK = ROOT / "target" / "bench" / "bias"
MEMLODE = ROOT / "target" / "memlode" / "bin" / "memlode"
# Package → library, relative to where it was unpacked.
LIBRARIES = {
    "libisal2": "usr/lib/x86_64-linux-gnu/libisal.so.2",
    "libjerasure2": "usr/lib/x86_64-linux-gnu/libJerasure.so.2",
    "libopenblas0-serial": "usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
    "libblis4-serial": "usr/lib/x86_64-linux-gnu/blis-serial/libblas.so.3",
    "libatlas3-base": "usr/lib/x86_64-linux-gnu/atlas/libblas.so.3",
    "libblas3": "usr/lib/x86_64-linux-gnu/blas/libblas.so.3",
}
NEEDED = ["libgfortran5", "libquadmath0", "libgf-complete1"]
# Seconds of one command, and how often it runs: as they are, and for --quick.
SECONDS = {
    "same": (3, 2),
    "two_percent": (20, 12),
    "layout": (60, 12),
    "kernel": (30, 6),
    "convolve": (30, 5),
    "erasure": (90, 40),
    "dgemv": (200, 60),
}
TIMES = {"same": (100, 3), "two_percent": (20, 2), "pages": (3, 1)}
# Thousands of steps that take some 20 ms and 100 ms.
SHORT, LONG = 10_000, 50_000
# Of coroutine.c and of smooth.c, in some 100 ms.
TURNS = 60_000_000
ROUNDS = 500_000


class Failure(Exception):
    """Something that the figures need could not be had."""


class Runner:
    """Runs commands of memlode, as long as the form of the benchmark says."""

    def __init__(self, quick):
        self.quick = quick

    def seconds(self, name):
        return f"{SECONDS[name][self.quick]}s"

    def times(self, name):
        return TIMES[name][self.quick]

    def json(self, *words):
        done = subprocess.run([MEMLODE, *map(str, words)], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"memlode {shlex.join(map(str, words))}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def build(name, compiler, *words):
    """Compiles into the working directory; words that name sources are those of tests/bias/programs."""
    out = WORK / name
    words = [PROGRAMS / word if (PROGRAMS / word).exists() else word for word in words]
    subprocess.run([*compiler.split(), *words, "-o", out], check=True)
    return out


def library(package):
    """Debian's library, unpacked; nothing is installed."""
    for one in [package, *NEEDED]:
        folder = WORK / "debian" / one
        if not folder.exists():
            archives = WORK / "archives"
            archives.mkdir(exist_ok=True)
            fetched = subprocess.run(["apt-get", "download", "-qq", one], cwd=archives, capture_output=True, text=True)
            if fetched.returncode != 0:
                raise Failure(f"apt-get download {one}: {fetched.stderr.strip()}")
            [archive] = archives.glob(f"{one}_*.deb")
            folder.parent.mkdir(exist_ok=True)
            subprocess.run(["dpkg", "-x", archive, folder], check=True)
    folders = [WORK / "debian" / one / "usr/lib/x86_64-linux-gnu" for one in [package, *NEEDED]]
    os.environ["LD_LIBRARY_PATH"] = ":".join(map(str, folders))
    return WORK / "debian" / package / LIBRARIES[package]


def instructions(program, rounds):
    """Instructions of a run, as Callgrind counts them."""
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, str(rounds)]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stderr
    return int(re.search(r"Collected : (\d+)", said)[1])


def claims(run, name, first, second):
    """How often a comparison claims a difference, and each one's sentence."""
    results = []
    for seed in range(run.times(name)):
        words = ["bench", "--time-limit", run.seconds(name), "--seed", seed, "--json"]
        result = run.json(*words, *first, "--", *second)
        [comparison] = result["comparisons"]
        results.append({"sentence": comparison["sentence"], "random": comparison["random"]})
    # As `bench` does: what is claimed is claimed of the random layouts.
    claimed = [one["random"]["ratio"] for one in results if one["random"]["p"] < 0.001]
    return {"comparisons": len(results), "claims": len(claimed), "claimed": claimed, "results": results}


def same(run):
    program = build("steady", "gcc -O2", HERE / "bias" / "steady.c")
    return claims(run, "same", [program, SHORT], [program, SHORT])


def two_percent(run):
    program = build("steady", "gcc -O2", HERE / "bias" / "steady.c")
    counts = [instructions(program, rounds // 100) for rounds in (LONG, LONG * 102 // 100)]
    found = claims(run, "two_percent", [program, LONG], [program, LONG * 102 // 100])
    found["found"] = sum(1.01 < ratio < 1.03 for ratio in found["claimed"])
    return {"instructions_ratio": counts[1] / counts[0], **found}


def linked(name, compiler, objects):
    """Links them in this order; the program, and the line of the link for --relink."""
    line = shlex.join([*compiler.split(), *map(str, objects), "-o"]) + " {out}"
    return build(name, compiler, *objects), line


def arrays(compiler, sizes):
    """An object for each array."""
    return [build(f"{name}.o", f"{compiler} -DNAME={name} -DBYTES={size}", "array.c") for name, size in sizes.items()]


def layout(run):
    """Where the coroutine's stack follows its variables they agree in their low 12 bits; half a page on they do not."""
    compiler = "clang-19 -O0 -g -fno-pie -c"
    others = {f"more{i}": 1024 + 512 * i for i in range(6)}
    main = build("coroutine.o", compiler, "coroutine.c")
    gap, stack, half, *more = arrays(compiler, {"gap": 32, "stack": 16384, "half": 2048, **others})
    near, near_line = linked("near", "clang-19 -no-pie", [main, gap, stack, half, *more])
    far, far_line = linked("far", "clang-19 -no-pie", [main, gap, half, stack, *more])
    limit = ["--time-limit", run.seconds("layout"), "--seed", 1, "--json"]
    [comparison] = run.json(
        "bench", "--relink", near_line, "--relink", far_line, *limit, "--", near, TURNS, "--", far, TURNS
    )["comparisons"]
    claimed = {name: comparison[name]["p"] < 0.001 for name in ("given", "random", "layout")}

    main = build("smooth.o", "gcc -O3 -g -c", "smooth.c")
    objects = arrays("gcc -O3 -c", {"samples": 4096, "smoothed": 4096, "half": 2048, **others})
    smooth, line = linked("smooth", "gcc", [main, *objects])
    links = run.json("bias", "link", "--relink", line, "--function", "smooth", *limit, "--", smooth, ROUNDS)
    return {
        "sentence": comparison["sentence"],
        # The code is the same: a difference at the layouts given is to be called layout, and none over random ones.
        "called_layout": claimed == {"given": True, "random": False, "layout": True},
        "comparison": comparison,
        "links": links,
    }


def kernel(run):
    builds = {
        "clang-19 -O0 -g -fno-pie -no-pie": "kernel-clang",
        "clang-19 -O0 -g": "kernel-clang-pie",
        "gcc -O0 -g -fno-pie -no-pie": "kernel-gcc",
    }
    found = {}
    for compiler, name in builds.items():
        program = build(name, compiler, "kernel.c")
        limit = ["--time-limit", run.seconds("kernel"), "--seed", 1, "--json"]
        found[compiler] = run.json("bias", "env", "--function", "work", *limit, "--", program)
    return found


def convolve(run):
    build("libconvolve.so", "gcc -O3 -g -shared -fPIC", "convolve.c")
    spec = WORK / "convolve.toml"
    text = (PROGRAMS / "convolve.toml").read_text()
    spec.write_text(text.replace("./libconvolve.so", str(WORK / "libconvolve.so")))
    return run.json("bias", "heap", "--time-limit", run.seconds("convolve"), "--seed", 1, "--json", spec)


def allocators(run):
    return run.json("bias", "alloc", "--json")


def pages(run):
    return [run.json("bias", "pages", "--pages", 450, "--json") for _ in range(run.times("pages"))]


def erasure(run):
    found = {}
    for package, options in (("libisal2", ""), ("libjerasure2", " -DJERASURE")):
        used = library(package)
        needed = [f"-Wl,-rpath-link,{folder}" for folder in os.environ["LD_LIBRARY_PATH"].split(":")]
        words = [HERE / "bias" / "erasure.c", used, f"-Wl,-rpath,{used.parent}", *needed]
        program = build(f"erasure-{package}", f"gcc -O2 -g{options}", *words)
        limit = ["--time-limit", run.seconds("erasure"), "--seed", 1, "--json"]
        found[package] = run.json("bias", "fix", *limit, "--", program, 1 if run.quick else 2)
    return found


DGEMV = """library = "{library}"
function = "cblas_dgemv"
move = "y"
arguments = [
  {{ int = 101 }}, {{ int = 111 }}, {{ int = 1024 }}, {{ int = 1024 }}, {{ f64 = 1.0 }}, {{ buffer = "a" }},
  {{ int = 1024 }}, {{ buffer = "x" }}, {{ int = 1 }}, {{ f64 = 0.5 }}, {{ buffer = "y" }}, {{ int = 1 }},
]

[[buffer]]
name = "a"
bytes = 8388608
fill = "f64"

[[buffer]]
name = "x"
bytes = 8192
fill = "f64"

[[buffer]]
name = "y"
bytes = 8192
fill = "f64"
"""


def dgemv(run):
    found = {}
    for package in ("libopenblas0-serial", "libblis4-serial", "libatlas3-base", "libblas3"):
        spec = WORK / f"{package}.toml"
        spec.write_text(DGEMV.format(library=library(package)))
        words = ["--step", 256 if run.quick else 16, "--time-limit", run.seconds("dgemv"), "--seed", 1, "--json", spec]
        found[package] = run.json("bias", "heap", *words)
    return found


FIGURES = [same, two_percent, layout, kernel, convolve, allocators, pages, erasure, dgemv]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--quick", action="store_true", help="every figure once, in some six minutes")
    parser.add_argument("names", nargs="*", metavar="NAME", help="figures (default: all)")
    options = parser.parse_args()
    known = {figure.__name__: figure for figure in FIGURES}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"there is no figure {unknown[0]}; there are {', '.join(known)}")
    WORK.mkdir(parents=True, exist_ok=True)
    run = Runner(options.quick)
    load = os.getloadavg()
    found, failures = {}, []
    for name in options.names or known:
        started = time.time()
        try:
            found[name] = known[name](run)
        except (Failure, subprocess.CalledProcessError) as failure:
            failures.append(f"{name}: {failure}")
        print(f"{name:12} {time.time() - started:5.0f} s  {summary(found.get(name)) or failures[-1]}", flush=True)
    report = {
        "date": datetime.date.today().isoformat(),
        "host": platform.processor() or platform.machine(),
        "quick": options.quick,
        "load": {"before": load, "after": os.getloadavg()},
        "failures": failures,
        **found,
    }
    out = WORK.parent / "bias.json"
    out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{out} written")
    sys.exit(1 if failures else 0)


def summary(found):
    """The sentences in a figure, or its counts."""
    if isinstance(found, dict) and "claims" in found:
        ratio = f"{found['instructions_ratio']:.4f} × the instructions, " if "instructions_ratio" in found else ""
        return f"{ratio}{found['claims']} of {found['comparisons']} comparisons claim a difference"
    if isinstance(found, dict) and "allocators" in found:
        return f"{len(found['allocators'])} rows"
    if isinstance(found, dict) and "sentence" in found:
        rest = [summary(value) for key, value in found.items() if key == "links"]
        if "called_layout" in found:
            rest.append("called layout" if found["called_layout"] else "not called layout")
        return "\n".join([found["sentence"], *rest])
    if isinstance(found, dict):
        return "\n".join(f"{key}: {text}" for key, value in found.items() if (text := summary(value)))
    if isinstance(found, list) and all(isinstance(value, dict) for value in found):
        return "\n".join(text for value in found if (text := summary(value)))
    return ""


if __name__ == "__main__":
    main()
