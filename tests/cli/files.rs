//! The files that a command line of the compiler, and `memlode bench` afterwards, write: those of clang, and no others.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command as Process, Output};

use tempfile::TempDir;

use crate::{installation, memlode, stderr};

/// Command lines that write files, in many ways and places.
const LINES: &[&str] = &[
    // Programs by other names than behind -o.
    "a.c b.c --output prog",
    "a.c b.c --output=prog",
    "a.c b.c -oprog",
    "a.c b.c -o a.out -o prog",
    "a.c b.c -Wl,-o,prog",
    "a.c b.c -Wl,-o -Wl,prog",
    "a.c b.c -Wl,--outp=prog",
    "a.c b.c -Xlinker --output -Xlinker prog",
    "a.c b.c -Wl,@linker-arguments",
    "@arguments",
    "--config=arguments",
    "a.c b.c -o prog -Wl,-T,output.ld",
    "a.c b.c -o folder/prog",
    "a.c b.c -o link",
    "a.c b.c -o /dev/null",
    "a.c b.c",
    // Links that are none.
    "-### a.c b.c",
    "-fdriver-only a.c b.c",
    "a.c -o prog",
    "a.c b.c -Xclang -fsyntax-only",
    "a.c b.c --emit-static-lib -o liba.a",
    "-shared -fPIC b.c -o libb.so",
    "-r -nostdlib a.c b.c -o ab.o",
    "-c a.c -gsplit-dwarf",
    // Files beside the program.
    "a.c b.c -o prog -gsplit-dwarf",
    "a.c b.c -o prog -g -gsplit-dwarf -MD -MF deps.d",
    "a.c b.c -o prog -MMD -Wl,-Map=prog.map -save-temps=obj",
    "a.c b.c -o prog -ftime-trace -fstack-usage -fsave-optimization-record -MJ commands.json",
    "a.c b.c -o prog -fuse-ld=lld -Wl,--dependency-file=link.d,--reproduce=all.tar,--time-trace",
    "a.c b.c -o prog -flto -fuse-ld=lld -Wl,--save-temps",
    // What clang refuses is tried again, to say which option it was.
    "a.c b.c -o prog -fno-such-option -ftime-trace=deps.d -fsave-optimization-record",
];

/// Links that write files beside the program, for [`links_that_are_made_again`].
const BESIDE: &[&str] = &[
    "a.c b.c -MD -MF deps.d -Wl,-Map=prog.map -Wl,--cref --output prog",
    "a.c b.c -MMD -MT a.o -MP -save-temps -Wl,-o,prog -Xlinker -Map -Xlinker prog.map",
    "a.c b.c -g -gsplit-dwarf -MJ commands.json -ftime-trace=trace.json -fstack-usage -o prog",
    "a.c b.c -fuse-ld=lld -Wl,--dependency-file=link.d,--reproduce=all.tar,--time-trace=trace.json -o prog",
    "a.c b.c -flto -fuse-ld=lld -Wl,--save-temps -Wp,-MD,deps.d -fsave-optimization-record -o prog",
    "@arguments -Wl,-Map=prog.map",
];

/// A folder of sources and of files that command lines may mean or not.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("a.c", "int b(int);\nint main(void) { return b(2); }\n");
    write("b.c", "int b(int n) { return n - 2; }\n");
    write("arguments", "a.c b.c -o prog\n");
    write("linker-arguments", "-o prog\n");
    write("output.ld", "OUTPUT(other)\nINSERT AFTER .text;\n");
    fs::create_dir(folder.path().join("folder")).expect("a folder");
    std::os::unix::fs::symlink("folder/target", folder.path().join("link")).expect("a link");
    // An ELF file by each name that an output might have been taken for.
    for name in ["a.out", "prog", "other", "a.d", "b.d", "deps.d", "null.json"] {
        fs::copy("/bin/true", folder.path().join(name)).expect("a file");
    }
    folder
}

/// Everything that changes when a file is written: inode, times and bytes, by path.
type Listing = BTreeMap<String, (u64, i64, i64, Vec<u8>)>;

fn listing(folder: &Path) -> Listing {
    let mut found = Listing::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let Ok(meta) = fs::metadata(&path) else { continue };
        if meta.is_dir() {
            found.extend(listing(&path).into_iter().map(|(inner, facts)| (format!("{name}/{inner}"), facts)));
        } else {
            let bytes = fs::read(&path).expect("a file");
            found.insert(name, (meta.ino(), meta.mtime(), meta.mtime_nsec(), bytes));
        }
    }
    found
}

/// The names of the files that differ.
fn changed(before: &Listing, after: &Listing) -> Vec<String> {
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    names.filter(|name| before.get(*name) != after.get(*name)).cloned().collect()
}

fn compile(folder: &Path, line: &str) -> Output {
    let mut command = memlode();
    command.env("MEMLODE_HOME", installation()).current_dir(folder).arg("cc").args(line.split(' '));
    command.output().expect("memlode runs")
}

#[test]
fn a_command_line_writes_the_files_that_clang_writes() {
    for line in LINES {
        let (plain, ours) = (folder(), folder());
        let before = (listing(plain.path()), listing(ours.path()));
        let clang = Process::new("clang-22").current_dir(plain.path()).args(line.split(' ')).output();
        let clang = clang.expect("clang-22 runs");
        let output = compile(ours.path(), line);
        assert_eq!(output.status.code(), clang.status.code(), "{line}: {}", stderr(&output));
        let after = (listing(plain.path()), listing(ours.path()));
        assert_eq!(changed(&before.1, &after.1), changed(&before.0, &after.0), "{line}");
    }
}

/// `bench` links programs anew, each in several orders, and nothing in the user's folder is touched, though the user's own
/// link wrote there.
#[test]
fn links_that_are_made_again_leave_the_folder_as_it_is() {
    for line in BESIDE {
        let folder = folder();
        let output = compile(folder.path(), line);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        let before = listing(folder.path());
        let mut bench = memlode();
        bench
            .current_dir(folder.path())
            .args(["bench", "--rounds", "12", "--links", "3", "--json", "./prog"]);
        let output = bench.output().expect("memlode runs");
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        assert!(!stderr(&output).contains("code layout is not varied"), "{line}: {}", stderr(&output));
        assert_eq!(changed(&before, &listing(folder.path())), Vec::<String>::new(), "{line}");
    }
}
