//! Odd sources: each edit is refused with a place; or its patch applies and compiles, and the
//! program's output is the same.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use memlode_layout::{AddressUse, Layout, Role, Structure, StructureMember, edits_from_text};
use memlode_patch::clang::{Clang, Tree};
use memlode_patch::command::Unit;
use memlode_patch::{Patch, Unpatched};
use tempfile::TempDir;

/// The structure of most sources, and a program around it: `@` in a source stands for these.
const MAIN: &str = "int main(void) { struct arc *p = calloc(9, sizeof *p); long s = 0; \
                    for (int i = 0; i < 9; i++) { p[i].cost = i; p[i].state = 3 * i; p[i].name[i] = 1; } \
                    for (int i = 0; i < 9; i++) s += p[i].cost - p[i].state + p[i].name[3]; printf(\"%ld\\n\", s); return 0; }\n";
const ARC: &str = "struct arc { long cost; char name[40]; long state; };\n";
const TOP: &str = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <stddef.h>\n";

/// The outcome that an edit must have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Want {
    /// It is applied.
    Applied,
    /// It is refused, with this message.
    Refused(&'static str),
}
use Want::{Applied, Refused as No};

const REORDER: &str = "reorder arc: state, name";
const PLACE: &str = "arc.c:";

/// Name of the source, its text, the edit, and the expected result.
const CASES: &[(&str, &str, &str, Want)] = &[
    ("plain", "$@", REORDER, Applied),
    ("flexible", "struct arc { long cost; char name[40]; long state; char rest[]; };\n@", REORDER, Applied),
    (
        "aligned_member",
        "struct arc { long cost, spare; char name[40]; /* its state */ long state; };\n\
         static struct arc first; @#sizeof first.name",
        "align arc: spare, state to 16",
        Applied,
    ),
    ("positional", "$static struct arc first = {7, \"seven\", 42};\n@#", REORDER, No("by their position")),
    (
        "elided",
        "$static struct arc all[2] = {7, \"seven\", 42, 8, \"eight\", 43};\n@#",
        REORDER,
        No("by their position"),
    ),
    (
        "outer",
        "$struct out { int n; struct arc a; }; static struct out o = {1, 7, \"seven\", 42};\n@#",
        REORDER,
        No("by their position"),
    ),
    (
        "outer_braced",
        "$struct out { int n; struct arc a; }; static struct out o = {1, {.state = 42, .cost = 7}};\n@#o.a.cost",
        REORDER,
        Applied,
    ),
    ("designated", "$static struct arc first = {.cost = 7, .state = 42};\n@#first.cost", REORDER, Applied),
    (
        "designated_array",
        "$static struct arc all[] = {[1] = {.cost = 7, .state = 42}, {.name = \"x\"}};\n@#all[1].state",
        REORDER,
        Applied,
    ),
    ("mixed", "$static struct arc first = {7, .state = 42};\n@#first.cost", REORDER, No("by their position")),
    ("zero", "$static struct arc first = {0};\n@#first.cost", REORDER, Applied),
    (
        "literal",
        "$static long f(struct arc a) { return a.cost; }\n@#f((struct arc){7, \"x\", 42})",
        REORDER,
        No("by their position"),
    ),
    (
        "acting",
        "$static int n; static int next(void) { return ++n; }\nstatic long f(void) { struct arc a = {.cost = next(), .state = next()}; return a.cost * 10 + a.state; }\n@#f()",
        REORDER,
        No("that act"),
    ),
    (
        "pointer_macro",
        "#define FIRST {7, \"seven\", 42}\n$static struct arc first = FIRST;\n@#first.cost",
        REORDER,
        No("by their position"),
    ),
    (
        "function_pointer",
        "struct arc { long cost; int (*price)(int, int), flag; char name[40]; long state; };\n@",
        "reorder arc: state, name",
        Applied,
    ),
    (
        "function_pointer_parted",
        "struct arc { long cost; int (*price)(int, int), flag; char name[40]; long state; };\n@",
        "reorder arc: flag, state",
        Applied,
    ),
    (
        "declarators",
        "struct arc { long cost, *more, state, (*row)[3]; char name[40], *last; };\n@",
        "reorder arc: state, row, last",
        Applied,
    ),
    (
        "arrays",
        "struct arc { long cost; char name[40], other[3][2]; long state; };\n@",
        "reorder arc: other",
        Applied,
    ),
    (
        "attributes",
        "struct arc { long cost __attribute__((aligned(8))); __attribute__((aligned(16))) char name[40]; _Alignas(32) long state; };\n@",
        REORDER,
        No("not where the layout has it"),
    ),
    (
        "typeof",
        "struct arc { long cost; typeof(int (*)(void)) call; __typeof__(long *) a, b; char name[40]; long state; };\n@",
        "reorder arc: b, state",
        Applied,
    ),
    (
        "packed",
        "struct __attribute__((packed)) arc { char c; long cost; char name[40]; long state; };\n@",
        "reorder arc: state",
        Applied,
    ),
    (
        "bits",
        "struct arc { long cost; unsigned a : 3, b : 5; char name[40]; long state; };\n@",
        "reorder arc: state",
        Applied,
    ),
    (
        "comments",
        "struct arc {\n  // one \\\n  more;\n  long cost; /* a; b */ // c; }\n  /* name\n   * of it */\n  char name[40]; /* long\n  one */ long state; // s\n};\n@",
        REORDER,
        Applied,
    ),
    (
        "one_line",
        "struct arc { long cost; // it is {\n char name[40]; long state; }; static int after = 1;\n@",
        "reorder arc: state",
        Applied,
    ),
    (
        "conditional",
        "struct arc {\n  long cost;\n#if 1\n  char name[40];\n#endif\n  long state;\n};\n@",
        REORDER,
        No("directives"),
    ),
    (
        "copy",
        "#if 0\nstruct arc { long cost; char name[40]; long state; int old; };\n#endif\n$@",
        REORDER,
        Applied,
    ),
    ("commented_include", "//#include \"legacy_that_is_gone.h\"\n$@", REORDER, Applied),
    (
        "macro_member",
        "#define COST long cost\nstruct arc { COST; char name[40]; long state; };\n@",
        REORDER,
        No("macro"),
    ),
    (
        "macro_tag",
        "#define TAG arc\nstruct TAG { long cost; char name[40]; long state; };\n@",
        REORDER,
        Applied,
    ),
    (
        "macro_length",
        "#define LENGTH 40\nstruct arc { long cost; char name[LENGTH]; long state; };\n@",
        REORDER,
        Applied,
    ),
    (
        "x_macro",
        "#define EACH(X) X(long, cost) X(long, state)\n#define X(t, n) t n;\nstruct arc { EACH(X) char name[40]; };\n#undef X\n@",
        "reorder arc: state",
        No("macro"),
    ),
    (
        "typedef",
        "typedef struct { long cost; char name[40]; long state; } arc;\n#define arc_t arc\nint main(void) { arc a = {.cost = 1, .state = 2}; printf(\"%ld\\n\", a.cost); }\n",
        REORDER,
        Applied,
    ),
    (
        "typedef_tag",
        "typedef struct arc { long cost; char name[40]; long state; } arc_t;\n@",
        REORDER,
        Applied,
    ),
    (
        "anonymous",
        "struct arc { long cost; union { long state; char c; }; char name[40]; };\n@",
        "reorder arc: name",
        No(PLACE),
    ),
    (
        "nested",
        "struct arc { long cost; struct in { int a, b; } in; char name[40]; long state; };\n@",
        "reorder arc: state, in",
        Applied,
    ),
    (
        "scopes",
        "$static long f(void) { struct arc { int cost, state; } a = {.state = 1}; return a.state; }\n@#f()",
        REORDER,
        No("several of this name"),
    ),
    (
        "offset",
        "$_Static_assert(offsetof(struct arc, state) == 48, \"\");\n@",
        REORDER,
        No("offset of state"),
    ),
    (
        "container",
        "$static struct arc *of(long *s) { return (struct arc *)((char *)s - offsetof(struct arc, state)); }\n@#of(0) == 0",
        REORDER,
        No(PLACE),
    ),
    (
        "range",
        "$static void clear(struct arc *p) { memset(&p->cost, 0, sizeof(struct arc) - 8); }\nstatic struct arc g = {.state = 5};\nstatic long f(void) { clear(&g); return g.state; }\n@#f()",
        REORDER,
        No(PLACE),
    ),
    (
        "prefix",
        "$static struct arc g = {.state = 5, .cost = 4};\nstatic long f(void) { memset(&g, 0, 48); return g.state; }\n@#f()",
        REORDER,
        No("a part of it"),
    ),
    (
        "neighbours",
        "struct arc { char name[40]; long cost, state; };\nstatic struct arc g = {.state = 5, .cost = 4};\nstatic long f(void) { long *p = &g.cost; return p[1]; }\n@#f()",
        "reorder arc: state",
        No("is kept"),
    ),
    (
        "neighbours_direct",
        "struct arc { char name[40]; long cost, state; };\nstatic struct arc g = {.state = 5, .cost = 4};\n@#(&g.cost)[1]",
        "reorder arc: state",
        No("calculated"),
    ),
    (
        "passed",
        "struct arc { char name[40]; long cost, state; };\nstatic long sum(long *p) { return p[0] + 2 * p[1]; }\nstatic struct arc g = {.state = 5, .cost = 4};\n@#sum(&g.cost)",
        "reorder arc: state",
        No("passed on"),
    ),
    (
        "scanned",
        "$static struct arc g;\nstatic long f(void) { sscanf(\"7\", \"%ld\", &g.cost); return g.cost; }\n@#f()",
        REORDER,
        Applied,
    ),
    (
        "as_bytes",
        "$static struct arc g = {.state = 5, .cost = 4};\n@#((unsigned char *)&g)[0]",
        REORDER,
        No("another pointer"),
    ),
    (
        "hashed",
        "$static long hash(const void *p, size_t n) { long h = 0; for (size_t i = 0; i < n; i++) h = h * 31 + ((const char *)p)[i]; return h; }\nstatic struct arc g = {.state = 5, .cost = 4};\n@#hash(&g, sizeof g)",
        REORDER,
        No("as bytes"),
    ),
    (
        "written",
        "$static struct arc g = {.state = 5, .cost = 4};\nstatic long f(void) { return (long)fwrite(&g, sizeof g, 1, stdout); }\n@#f()",
        REORDER,
        No("as bytes"),
    ),
    (
        "compared",
        "$static struct arc g = {.state = 5, .cost = 4}, h = {.state = 4, .cost = 5};\n@#memcmp(&g, &h, sizeof g) > 0",
        REORDER,
        No("as bytes"),
    ),
    (
        "copied",
        "$static struct arc g = {.state = 5, .cost = 4}, h;\nstatic long f(void) { memcpy(&h, &g, sizeof h); return h.state; }\n@#f()",
        REORDER,
        Applied,
    ),
    (
        "serialised",
        "$static struct arc g = {.state = 5, .cost = 4}; static char buffer[56];\nstatic long f(void) { memcpy(buffer, &g, sizeof g); return buffer[0]; }\n@#f()",
        REORDER,
        No("another type"),
    ),
    (
        "union",
        "$union both { struct arc a; long words[7]; }; static union both b = {.a = {.cost = 4, .state = 5}};\n@#b.words[0]",
        REORDER,
        No("in a union"),
    ),
    ("crlf", "\r", REORDER, Applied),
    (
        "tabs",
        "struct arc\n{\n\tlong\tcost ;\n\tchar\tname [40] ;\n\tlong\tstate\t; }\n;\n@",
        REORDER,
        Applied,
    ),
    ("bom", "\u{feff}$@", REORDER, Applied),
    ("joined_lines", "struct arc { long co\\\nst; char name[40]; long state; };\n@", REORDER, No("")),
    ("pad", "$@", "pad arc to 64", Applied),
    ("pad_size", "$@#(long)sizeof(struct arc)", "pad arc to 64", No("its size")),
    ("align_heap", "$@", "align arc to 64", No("aligned to less")),
    (
        "align_static",
        "$static struct arc g[3];\nint main(void) { g[1].cost = 4; printf(\"%ld\\n\", g[1].cost + g[2].state); return g[0].name[1]; }\n",
        "align arc to 64",
        Applied,
    ),
    ("split", "$@", "split arc: hot=cost by=pointer", No("name is used")),
    ("soa", "$@", "soa arc", No("the definition")),
    ("aosoa", "$@", "aosoa arc by 8", No("cost is used")),
    ("narrow", "$@", "narrow arc: cost to 4", No("cost is used")),
    ("remove_used", "$@", "remove arc: state", No("state is used")),
    (
        "remove",
        "struct arc { long cost; int spare; char name[40]; long state; };\n@",
        "remove arc: spare",
        Applied,
    ),
    (
        "assembly",
        "$static struct arc g = {.state = 5, .cost = 4};\nstatic long f(struct arc *p) { long v; __asm__ volatile(\"movq 48(%1), %0\" : \"=r\"(v) : \"r\"(p) : \"memory\"); return v; }\n@#f(&g)",
        REORDER,
        No("assembly"),
    ),
];

/// The same for C++; the file is `arc.cc`.
const CXX: &[(&str, &str, &str, Want)] = &[
    ("plain", "struct arc { long cost; char name[40]; long state; };\n@", REORDER, Applied),
    ("aggregate", "$static arc g{7, \"seven\", 42};\n@#g.cost", REORDER, No("arc.cc:")),
    ("designated", "$static arc g{.cost = 7, .state = 42};\n@#g.cost", REORDER, No("arc.cc:")),
    (
        "binding",
        "$static arc g; static long f() { auto &[a, b, c] = g; return a + c; }\n@#f()",
        REORDER,
        No("arc.cc:"),
    ),
    (
        "access",
        "class arc { public: long cost; char name[40]; private: int hidden = 0; public: long state; };\n@",
        REORDER,
        No("access"),
    ),
    (
        "order",
        "struct arc { long cost; char name[40]; long state; arc() : cost(7), state(cost + 1) {} };\nstatic arc g;\n@#g.state",
        REORDER,
        No("initialised"),
    ),
    (
        "defaults",
        "struct arc { long cost = 7; char name[40]; long state = cost + 1; };\nstatic arc g;\n@#g.state",
        REORDER,
        No("initialis"),
    ),
    (
        "objects",
        "struct loud { int n; loud(int n) : n(n) { printf(\"%d\\n\", n); } ~loud() {} };\nstruct arc { long cost; loud a{1}; char name[40]; loud b{2}; long state; };\nstatic arc g;\n@",
        "reorder arc: b",
        No("order of their declaration"),
    ),
    (
        "methods",
        "struct arc {\n  long cost;\n  long get() const { return cost; }\n  char name[40];\n  static int many;\n  long state;\n};\n@",
        REORDER,
        Applied,
    ),
    (
        "inherits",
        "struct base { int n = 3; };\nstruct arc : base { long cost; char name[40]; long state; };\n@",
        "reorder arc: state",
        No("base class"),
    ),
    (
        "template_use",
        "$template <class T> static long f(T a) { auto [x, y, z] = a; return x; }\n@#f(arc())",
        REORDER,
        No("arc.cc:"),
    ),
    (
        "pointer_to_member",
        "$static long arc::*which = &arc::state;\nstatic arc g;\n@#g.*which",
        REORDER,
        Applied,
    ),
];

fn text(case: &str) -> String {
    if case == "\r" {
        return text("struct arc {\n  long cost; // c\n  char name[40];\n  long state;\n};\n@")
            .replace('\n', "\r\n");
    }
    let (body, printed) = match case.rsplit_once("@#") {
        Some((body, printed)) => (format!("{body}@"), printed.to_string()),
        None => (case.to_string(), String::new()),
    };
    let printed = if printed.is_empty() { "0".to_string() } else { printed };
    let main =
        MAIN.replace("printf(\"%ld\\n\", s)", &format!("printf(\"%ld %ld\\n\", s, (long)({printed}))"));
    let main = main.replace("calloc", "(struct arc *)calloc");
    let bom = body.starts_with('\u{feff}');
    let body = body.trim_start_matches('\u{feff}').replacen('$', ARC, 1).replacen('@', &main, 1);
    format!("{}{TOP}{body}", if bom { "\u{feff}" } else { "" })
}

struct Program {
    folder: TempDir,
    file: PathBuf,
    compiler: &'static str,
}

impl Program {
    fn shell(&self, line: &str) -> (bool, String) {
        let output =
            Command::new("sh").args(["-c", line]).current_dir(self.folder.path()).output().expect("a shell");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout) + &text(&output.stderr))
    }

    fn prints(&self) -> Result<String, String> {
        let file = self.file.file_name().expect("a name").display();
        let (compiles, said) = self.shell(&format!("{} -w -O1 {file} -o it", self.compiler));
        if !compiles {
            return Err(said);
        }
        Ok(self.shell("./it; echo $?").1)
    }
}

/// The structure as compiled, by clang.
fn compiled(tree: &Tree) -> Option<Structure> {
    let is_arc = |node: &&memlode_patch::clang::Node| {
        node.name == "arc" && node.ty.record == node.spot && node.ty.bytes > 0
    };
    let at = tree.nodes.iter().position(|node| is_arc(&node))?;
    let (bytes, align) = (tree.nodes[at].ty.bytes as u64, tree.nodes[at].ty.align as u64);
    let record = tree.nodes[at].spot;
    let mut members = Vec::new();
    for node in &tree.nodes {
        let Some((bits, width)) = node.member.filter(|_| tree.nodes[node.parent].spot == record) else {
            continue;
        };
        let role = match () {
            () if width >= 0 => Role::Bits,
            () if node.ty.bytes < 0 => Role::FlexibleArray,
            () => Role::Value,
        };
        let bytes = if width >= 0 { (bits % 8 + i64::from(width) + 7) / 8 } else { node.ty.bytes.max(0) };
        let (offset, align) = (bits as u64 / 8, node.ty.align.max(1) as u64);
        let address = AddressUse::Kept;
        members.push(StructureMember {
            name: node.name.clone(),
            offset,
            bytes: bytes as u64,
            align,
            role,
            address,
        });
    }
    if let Some(first) = members.iter().map(|member| member.offset).min().filter(|first| *first > 0) {
        let (name, role, address) = ("base".into(), Role::Base, AddressUse::Kept);
        members.push(StructureMember { name, offset: 0, bytes: first, align: first, role, address });
    }
    Some(Structure { name: "arc".into(), bytes, align, members })
}

/// Applies an edit, or returns the reason why not.
fn edited(clang: &Clang, program: &Program, edit: &str) -> Result<String, String> {
    let resources = program.shell("clang-22 -print-resource-dir").1.trim().to_string();
    let words =
        ["clang-22".to_string(), format!("-resource-dir={resources}"), program.file.display().to_string()];
    let tree = clang.read(&words, &HashMap::new()).map_err(|why| why.to_string())?;
    let structure = compiled(&tree).ok_or("no structure")?;
    let mut layout = Layout::compiled(structure).map_err(|why| why.to_string())?;
    for edit in edits_from_text(edit).expect("an edit") {
        layout.apply(&edit).map_err(|why| why.to_string())?;
    }
    let unit = Unit { file: program.file.clone(), options: Vec::new() };
    let say = |why: Unpatched| why.to_string();
    let source = Box::new(|file: &Path| fs::read(file).map_err(|why| why.to_string()));
    let mut patch = Patch::new(vec![unit], Path::new("clang-22"), &resources, program.folder.path(), source)
        .map_err(say)?;
    patch.add(&layout).map_err(say)?;
    patch.diff().map_err(say)
}

fn judge(cases: &[(&str, &str, &str, Want)], name: &str, compiler: &'static str) {
    let clang = Clang::load().expect("libclang");
    let mut faults = Vec::new();
    for (case, source, edit, want) in cases {
        let folder = TempDir::new().expect("a folder");
        let file = folder.path().canonicalize().expect("a path").join(name);
        fs::write(&file, text(source)).expect("a file");
        let program = Program { folder, file, compiler };
        let before = program.prints();
        let is = match edited(&clang, &program, edit) {
            Ok(diff) => {
                fs::write(program.folder.path().join("it.patch"), &diff).expect("a file");
                let (applies, said) = program.shell("patch -p1 < it.patch");
                let same = program.prints();
                match applies && same == before && before.is_ok() && !diff.is_empty() {
                    true if *want == Applied => continue,
                    true => format!("is applied:\n{diff}"),
                    false => format!("WRONG: {said}{diff}{before:?} {same:?}"),
                }
            }
            Err(why) => match want {
                No(part) if why.contains(part) && before.is_ok() => continue,
                _ => format!("is refused: {why} (before: {before:?})"),
            },
        };
        faults.push(format!("{case}: wanted {want:?}, but {is}"));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn a_patch_of_c_keeps_what_the_program_prints() {
    judge(CASES, "arc.c", "clang-22");
}

#[test]
fn a_patch_of_cxx_keeps_what_the_program_prints() {
    judge(CXX, "arc.cc", "clang++-22");
}
