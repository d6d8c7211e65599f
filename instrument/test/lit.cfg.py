"""Suite of the pass plug-in. Parameters: LLVM (22 or 19), ROOT (the repository)."""

import os
import platform
import subprocess
import sys

import lit.formats

llvm = lit_config.params.get("LLVM", "22")
root = lit_config.params["ROOT"]
bin_dir = f"/usr/lib/llvm-{llvm}/bin"
plugin = f"{root}/target/memlode/lib/memlode-pass-{llvm}.so"
out = f"{root}/target/memlode/build/pass-{llvm}/test"
names = f"{root}/target/memlode/build/pass-{llvm}/memlode-names-dump.so"
every = f"{root}/target/memlode/build/pass-{llvm}/memlode-every-intrinsic.so"
recorder = f"{out}/recorder.o"

config.name = f"memlode pass, LLVM {llvm}"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".ll", ".c", ".cpp", ".test"]
config.excludes = ["Inputs", "dump", "every"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = out
config.available_features.add(f"llvm-{llvm}")
if os.path.exists(f"{bin_dir}/ld.lld"):
    config.available_features.add("lld")
if platform.machine() == "x86_64":
    config.available_features.add("x86")
if " avx2 " in open("/proc/cpuinfo").read():
    config.available_features.add("avx2")
if " avx512vl " in open("/proc/cpuinfo").read():
    config.available_features.add("avx512")

# The recorder for tests is the same whatever the version under test.
os.makedirs(out, exist_ok=True)
source = os.path.join(os.path.dirname(__file__), "Inputs", "recorder.cpp")
subprocess.run(["clang++-22", "-std=c++17", "-O1", "-fPIC", "-Wall", "-Werror", f"-I{root}/format/generated",
                "-c", source, "-o", recorder], check=True)
# The runtime's own looks at what libc has made.
blocks = f"{out}/libc_blocks.o"
subprocess.run(["clang-22", "-std=c11", "-D_GNU_SOURCE", "-O1", "-fPIC", "-Wall", "-Werror",
                f"-I{root}/record/include", f"-I{root}/format/generated",
                "-c", f"{root}/record/src/libc_blocks.c", "-o", blocks], check=True)

inherited = {k: v for k, v in os.environ.items() if not k.startswith("MEMLODE_")}
config.environment = {"PATH": inherited["PATH"], "HOME": inherited.get("HOME", "/")}

for name, command in [
    # Compile with the pass; link with the recorder.
    ("%memlode-c", f"{bin_dir}/clang -g -fpass-plugin={plugin}"),
    ("%memlode-cxx", f"{bin_dir}/clang++ -g -fpass-plugin={plugin}"),
    ("%clangxx", f"{bin_dir}/clang++"),
    ("%clang", f"{bin_dir}/clang"),
    # Compile and print the name of every access instead.
    ("%names-c", f"{bin_dir}/clang -c -o /dev/null -fpass-plugin={names}"),
    ("%names-cxx", f"{bin_dir}/clang++ -c -o /dev/null -fpass-plugin={names}"),
    ("%names-opt", f"{bin_dir}/opt -disable-output -load-pass-plugin={names} -passes=memlode-names-dump"),
    ("%link", f"{bin_dir}/clang++ {recorder} {blocks} -lpthread -lm -ldl"),
    ("%opt", f"{bin_dir}/opt -load-pass-plugin={plugin}"),
    ("%verify", f"{bin_dir}/opt -passes=verify -disable-output"),
    ("%plugin", plugin),
    ("%every", every),
    ("%root", root),
    ("%python", sys.executable),
    ("%llvm", bin_dir),
    ("%FileCheck", "FileCheck-22"),
    ("%split-file", "split-file-22"),
    ("%readelf", f"{bin_dir}/llvm-readelf"),
    ("%recorder", recorder),
]:
    config.substitutions.append((name + r"\b", command))
