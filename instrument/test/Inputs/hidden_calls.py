"""Which calls does the code generator make of what is none in the IR? Asks it, and compares with the pass.

    python3 hidden_calls.py OPT LLC PLUGIN [TARGET…]

Each function here stores, does one thing, and stores again. Recorded and compiled to assembly, whatever is called in
it must be called in the recorded IR as well, where the pass has seen it; or, for what the code generator orders with
memory itself, the cursor must be in memory between the two stores.
"""

import os
import re
import subprocess
import sys

TARGETS = {
    "x86-64": ("x86_64-pc-linux-gnu", ""),
    "x86-64-v2": ("x86_64-pc-linux-gnu", "+sse4.1,+sse4.2,+popcnt"),
    "x86-64-v3": ("x86_64-pc-linux-gnu", "+avx,+avx2,+fma,+f16c,+sse4.1,+bmi"),
    "x86-64-v4": ("x86_64-pc-linux-gnu", "+avx512f,+avx512vl,+avx512bw,+avx512fp16,+avx512dq,+avx2,+fma,+f16c"),
    "x86-64-cx16": ("x86_64-pc-linux-gnu", "+cx16"),
    "aarch64": ("aarch64-linux-gnu", ""),
    "aarch64-full": ("aarch64-linux-gnu", "+fullfp16,+bf16,+lse"),
    "aarch64-outline": ("aarch64-linux-gnu", "+outline-atomics"),
    "aarch64-strict": ("aarch64-linux-gnu", "+strict-align"),
}
FLOATS = ["half", "bfloat", "float", "double", "x86_fp80", "fp128", "<2 x double>", "<4 x float>", "<8 x half>"]
SUFFIX = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "x86_fp80": "f80", "fp128": "f128",
          "<2 x double>": "v2f64", "<4 x float>": "v4f32", "<8 x half>": "v8f16"}
UNARY = ["sin", "cos", "tan", "exp", "exp2", "exp10", "log", "log2", "log10", "sqrt", "fabs", "floor", "ceil", "trunc",
         "rint", "nearbyint", "round", "roundeven", "canonicalize"]
BINARY = ["pow", "minnum", "maxnum", "minimum", "maximum", "copysign"]


def constructs():
    """Name, result type, parameters, text with {} for the result; of a type that the target may lack."""
    for kind in FLOATS:
        tag = SUFFIX[kind]
        for op in ("fadd", "fsub", "fmul", "fdiv", "frem"):
            yield f"{op}_{tag}", kind, [kind, kind], f"{op} {kind} %a0, %a1"
        truth = re.sub(r"x \w+", "x i1", kind) if kind.startswith("<") else "i1"
        yield f"fcmp_{tag}", truth, [kind, kind], f"fcmp olt {kind} %a0, %a1"
        yield f"fneg_{tag}", kind, [kind], f"fneg {kind} %a0"
        for op in UNARY:
            yield f"{op}_{tag}", kind, [kind], f"call {kind} @llvm.{op}.{tag}({kind} %a0)"
        for op in BINARY:
            yield f"{op}_{tag}", kind, [kind, kind], f"call {kind} @llvm.{op}.{tag}({kind} %a0, {kind} %a1)"
        for op in ("fma", "fmuladd"):
            arguments = ", ".join(f"{kind} %a{i}" for i in range(3))
            yield f"{op}_{tag}", kind, [kind] * 3, f"call {kind} @llvm.{op}.{tag}({arguments})"
        if kind.startswith("<"):
            continue
        for bits in (32, 64, 128):
            for op in ("fptosi", "fptoui"):
                yield f"{op}_{tag}_{bits}", f"i{bits}", [kind], f"{op} {kind} %a0 to i{bits}"
                sat = f"llvm.{op}.sat.i{bits}.{tag}"
                yield f"{op}_sat_{tag}_{bits}", f"i{bits}", [kind], f"call i{bits} @{sat}({kind} %a0)"
            for op in ("sitofp", "uitofp"):
                yield f"{op}_{tag}_{bits}", kind, [f"i{bits}"], f"{op} i{bits} %a0 to {kind}"
        for op in ("lrint", "llrint", "lround", "llround"):
            yield f"{op}_{tag}", "i64", [kind], f"call i64 @llvm.{op}.i64.{tag}({kind} %a0)"
        yield f"ldexp_{tag}", kind, [kind, "i32"], f"call {kind} @llvm.ldexp.{tag}.i32({kind} %a0, i32 %a1)"
        yield f"powi_{tag}", kind, [kind, "i32"], f"call {kind} @llvm.powi.{tag}.i32({kind} %a0, i32 %a1)"
        if kind not in ("half", "bfloat"):
            pair = f"{{ {kind}, i32 }}"
            yield f"frexp_{tag}", pair, [kind], f"call {pair} @llvm.frexp.{tag}.i32({kind} %a0)"
        for op, name in (("fadd", "constrained.fadd"), ("frem", "constrained.frem"), ("fdiv", "constrained.fdiv")):
            yield (f"strict_{op}_{tag}", kind, [kind, kind],
                   f'call {kind} @llvm.experimental.{name}.{tag}({kind} %a0, {kind} %a1, metadata !"round.dynamic", '
                   'metadata !"fpexcept.strict") strictfp')
    wider = [("half", "float"), ("half", "double"), ("bfloat", "float"), ("float", "double"), ("double", "fp128"),
             ("half", "fp128"), ("float", "x86_fp80"), ("half", "x86_fp80"), ("x86_fp80", "fp128")]
    for small, large in wider:
        yield f"ext_{SUFFIX[small]}_{SUFFIX[large]}", large, [small], f"fpext {small} %a0 to {large}"
        yield f"cut_{SUFFIX[large]}_{SUFFIX[small]}", small, [large], f"fptrunc {large} %a0 to {small}"
    for bits in (32, 64, 128, 256):
        for op in ("mul", "sdiv", "udiv", "srem", "urem", "shl", "ashr"):
            yield f"{op}_{bits}", f"i{bits}", [f"i{bits}"] * 2, f"{op} i{bits} %a0, %a1"
    for bits in (64, 128):
        for op in ("smul", "umul"):
            yield (f"{op}_overflow_{bits}", f"{{ i{bits}, i1 }}", [f"i{bits}"] * 2,
                   f"call {{ i{bits}, i1 }} @llvm.{op}.with.overflow.i{bits}(i{bits} %a0, i{bits} %a1)")
        for op in ("ctpop", "bswap", "bitreverse"):
            yield f"{op}_{bits}", f"i{bits}", [f"i{bits}"], f"call i{bits} @llvm.{op}.i{bits}(i{bits} %a0)"
    for bits, align in ((8, 1), (32, 4), (64, 8), (64, 4), (128, 16)):
        for op in ("add", "xchg", "and", "max"):
            yield f"atomic_{op}_{bits}_{align}", f"i{bits}", [f"i{bits}"], \
                f"atomicrmw {op} ptr %q, i{bits} %a0 seq_cst, align {align}"
        yield f"cmpxchg_{bits}_{align}", f"{{ i{bits}, i1 }}", [f"i{bits}"] * 2, \
            f"cmpxchg ptr %q, i{bits} %a0, i{bits} %a1 seq_cst seq_cst, align {align}"
        yield f"atomic_load_{bits}_{align}", f"i{bits}", [], f"load atomic i{bits}, ptr %q seq_cst, align {align}"
    for bits in (32, 64):
        kind = {32: "float", 64: "double"}[bits]
        yield f"atomic_fadd_{bits}", kind, [kind], f"atomicrmw fadd ptr %q, {kind} %a0 seq_cst, align {bits // 8}"
    yield "atomic_fadd_16", "half", ["half"], "atomicrmw fadd ptr %q, half %a0 seq_cst, align 2"
    for length in ("8", "16", "32", "33", "64", "65", "128", "300", "5000", "%n"):
        tag = "n" if length == "%n" else length
        for op in ("memcpy", "memmove"):
            yield f"{op}_{tag}", None, [], f"call void @llvm.{op}.p0.p0.i64(ptr %q, ptr %p, i64 {length}, i1 false)"
        for op in ("0", "7"):
            fill = f"call void @llvm.memset.p0.i64(ptr %q, i8 {op}, i64 {length}, i1 false)"
            yield f"memset_{op}_{tag}", None, [], fill
    yield ("memcpy_elements", None, [], "call void @llvm.memcpy.element.unordered.atomic.p0.p0.i64(ptr align 4 %q, "
           "ptr align 4 %p, i64 64, i32 4)")
    yield "address", "ptr", [], "call ptr @llvm.threadlocal.address.p0(ptr @mine)"
    yield "own_access", "i64", [], "load i64, ptr @mine"
    yield "clear_cache", None, [], "call void @llvm.clear_cache(ptr %p, ptr %q)"
    yield "trap", None, [], 'call void @llvm.debugtrap() "trap-func-name"="my_trap"'


def module(triple, features, wanted, unoptimised):
    """IR of all constructs of a target, by name."""
    extra = " optnone noinline" if unoptimised else ""
    parts = [f'target triple = "{triple}"', "@mine = thread_local global i64 0"]
    layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
    if triple.startswith("aarch64"):
        layout = "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32"
    parts.insert(0, f'target datalayout = "{layout}"')
    for name, kind, parameters, text in wanted:
        arguments = "".join(f", {each} %a{index}" for index, each in enumerate(parameters))
        result = "" if text.startswith("call void") else "%r = "
        keep = f"  store {kind} %r, ptr %out\n" if kind else ""
        strict = " strictfp" if "strict_" in name else ""
        parts.append(f"define void @{name}(ptr %p, ptr %q, ptr %out, i64 %n{arguments}) #0{strict} {{\n"
                     f"  store i64 1, ptr %p\n  {result}{text}\n  store i64 2, ptr %p\n{keep}  ret void\n}}")
    parts.append(f'attributes #0 = {{{extra} nounwind "target-features"="{features}" }}')
    parts.append('!llvm.module.flags = !{!0}\n!0 = !{i32 8, !"PIC Level", i32 2}')
    declared = {}
    for text in parts:
        for result, callee, arguments in re.findall(r"call (.*?) @(llvm\.[\w.]+)\((.*?)\)(?: |$)", text, re.M):
            types = [re.sub(r" (align \d+ )?(%\w+|@\w+|\d+|true|false|!\".*?\")$", "", each.strip())
                     for each in re.split(r", (?![^<{]*[>}])", arguments) if each.strip()]
            types = [each.replace(" align 4", "") for each in types]
            declared[callee] = f"declare {result} @{callee}({', '.join(types)})"
    return "\n".join(parts + sorted(declared.values())) + "\n"


def run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr[:3000]}")
    return done.stdout


def compilable(target, wanted, command, unoptimised):
    """What LLVM's own code generator does not give up on."""
    while True:
        done = subprocess.run(command, input=module(*TARGETS[target], wanted, unoptimised), capture_output=True,
                              text=True, check=False)
        failed = re.search(r"on function '@([\w.]+)'", done.stderr)
        if done.returncode == 0 or not failed:
            return wanted
        wanted = [each for each in wanted if each[0] != failed[1]]


def bodies(text, pattern, end):
    """The text of each function by name."""
    found, name = {}, None
    for line in text.splitlines():
        start = re.match(pattern, line)
        if start:
            name = start[1]
            found[name] = []
        elif name and re.match(end, line):
            name = None
        elif name:
            found[name].append(line)
    return found


def called(assembly):
    """Symbols that are called, or jumped to."""
    found = set()
    for line in assembly:
        match = re.match(r"\s+(?:callq?|bl|jmp|b)\s+\*?([\w.]+)", line)
        if match and not match[1].startswith(".L"):
            found.add(match[1])
        if "tlsdesccall" in line or "blr" in line:
            found.add("tlsdesc")
    return found


def examine(target, opt, llc, plugin, unoptimised):
    """What is wrong, as sentences."""
    triple, features = TARGETS[target]
    # Arguments of type bfloat are converted where a function begins on x86.
    lacking = ["x86_fp80"] if triple.startswith("aarch64") else ["bfloat"]
    if triple.startswith("x86") and "avx512" not in features and "f16c" not in features:
        lacking.append("<8 x half>")
    wanted = [each for each in constructs()
              if not any(kind in f"{each[1]} {' '.join(each[2])} {each[3]}" for kind in lacking)]
    generate = [llc, "-O0" if unoptimised else "-O2", "-relocation-model=pic"]
    wanted = compilable(target, wanted, generate, unoptimised)
    source = module(triple, features, wanted, unoptimised)
    recorded = run([opt, f"-load-pass-plugin={plugin}", "-passes=memlode", "-S"], source)
    assembly = run(generate, recorded)
    ir = bodies(recorded, r"define .*@([\w.]+)\(", r"^}")
    machine = bodies(assembly, r"^(?!\.L)([\w.]+):", r"^\.Lfunc_end")
    wrong = []
    for name, _, _, text in wanted:
        seen = {callee for line in ir[name] for callee in re.findall(r"@([\w.]+)\(", line)}
        hidden = called(machine[name]) - seen
        first, last = (next(at for at, line in enumerate(ir[name]) if f"store i64 {n}, ptr %p" in line)
                       for n in (1, 2))
        between = ir[name][first + 1:last]
        ordered = re.compile(r"@llvm\.(mem|clear|debug)|(atomic|cmpxchg).* %q[ ,]")
        at = [at for at, line in enumerate(between) if ordered.search(line)]
        if hidden and at:
            if not any("@__memlode_cursor" in line for line in between[:at[0]]) or \
                    not any("@__memlode_cursor" in line for line in between[at[0]:]):
                wrong.append(f"{target}: {text}: {', '.join(sorted(hidden))} is called, with the cursor in a register")
        elif hidden:
            wrong.append(f"{target}: {text}: {', '.join(sorted(hidden))} is called, and no call in the IR")
    return wrong, len(wanted)


def main(opt, llc, plugin, *targets):
    # One side of each function is enough to compare.
    os.environ["MEMLODE_VERSIONS"] = "0"
    wrong, total = [], 0
    for target in targets or TARGETS:
        for unoptimised in (False, True) if not TARGETS[target][1] else (False,):
            found, count = examine(target, opt, llc, plugin, unoptimised)
            wrong += [each + (" (unoptimised)" if unoptimised else "") for each in found]
            total += count
    print("\n".join(wrong))
    print(f"{total} constructs, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
