//! Debug information that is compressed, or in a separate file, gives the same results as
//! uncompressed information in the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use memlode_symbols::ProgramFile;
use memlode_symbols::debug::DebugFrame;

const SOURCE: &str = "
struct pair { long left, right; } pairs[64];
static inline long add(struct pair *p) { return p->left + p->right; }
__attribute__((noinline)) long all(long count) {
    long sum = 0;
    for (long i = 0; i < count; i++) sum += add(&pairs[i % 64]);
    return sum;
}
int main(int argc, char **argv) { return (int)all(argc) + argv[0][0]; }
";

fn run(command: &str, arguments: &[&str], folder: &Path) {
    let status = Command::new(command).args(arguments).current_dir(folder).status();
    assert!(status.expect("of binutils or a compiler").success(), "{command} {arguments:?}");
}

/// A program with all in it.
fn built(folder: &Path, options: &[&str]) -> PathBuf {
    fs::write(folder.join("p.c"), SOURCE).expect("room");
    run("gcc", &[&["-O2", "-g", "p.c", "-o", "p"], options].concat(), folder);
    folder.join("p")
}

/// The frames at each byte of the functions, and the name of the function there by the symbols.
fn frames(program: &ProgramFile) -> Vec<(Option<String>, Vec<DebugFrame>)> {
    let debug =
        program.debug().unwrap_or_else(|| panic!("{}: no debug information", program.path().display()));
    let from = program.lowest();
    let at = |address| {
        let symbol = program.function_at(address).map(|symbol| symbol.name.clone());
        (symbol, debug.frames(address).expect("whole"))
    };
    (from..from + 0x2000).map(at).collect()
}

fn assert_whole(found: &[(Option<String>, Vec<DebugFrame>)]) {
    let is_inlined =
        |frames: &[DebugFrame]| frames.len() == 2 && frames[1].function.as_deref() == Some("all");
    assert!(found.iter().any(|(symbol, frames)| symbol.as_deref() == Some("all") && is_inlined(frames)));
}

#[test]
fn compressed_sections_are_unpacked() {
    let folder = tempfile::tempdir().expect("a folder");
    let expected = frames(&ProgramFile::read(&built(folder.path(), &[])).expect("a program"));
    assert_whole(&expected);
    for kind in ["zlib", "zstd"] {
        run("objcopy", &[&format!("--compress-debug-sections={kind}"), "p", kind], folder.path());
        let packed = folder.path().join(kind);
        assert_eq!(frames(&ProgramFile::read(&packed).expect("a program")), expected, "{kind}");
    }
    // A section that claims to be larger than its bytes can become is none.
    let mut bytes = fs::read(folder.path().join("zstd")).expect("a program");
    let zstd = [0x28, 0xb5, 0x2f, 0xfd];
    let starts: Vec<usize> =
        (24..bytes.len()).filter(|at| bytes[*at..].starts_with(&zstd) && bytes[*at - 24] == 2).collect();
    assert!(starts.len() > 3);
    for start in starts {
        bytes[start - 16..start - 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    }
    let program = ProgramFile::parse(bytes, Path::new("claims")).expect("a program");
    let named =
        program.debug().is_some_and(|debug| !debug.frames(program.entry()).unwrap_or_default().is_empty());
    assert!(!named);
}

#[test]
fn a_file_of_its_own_is_found_and_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for options in [&["-Wl,--build-id"][..], &["-Wl,--build-id=none"]] {
        let program = built(path, options);
        let expected = frames(&ProgramFile::read(&program).expect("a program"));
        run("objcopy", &["--only-keep-debug", "p", "p.debug"], path);
        run("objcopy", &["--strip-all", "p"], path);
        assert!(ProgramFile::read(&program).expect("a program").debug().is_none());
        run("objcopy", &["--add-gnu-debuglink=p.debug", "p"], path);
        assert_eq!(frames(&ProgramFile::read(&program).expect("a program")), expected, "{options:?}");
        fs::create_dir_all(path.join(".debug")).expect("room");
        fs::rename(path.join("p.debug"), path.join(".debug/p.debug")).expect("room");
        assert_eq!(frames(&ProgramFile::read(&program).expect("a program")), expected, "{options:?}");
        // Another build's is none of it.
        let other = SOURCE.replace("% 64", "% 32");
        fs::write(path.join("other.c"), other).expect("room");
        run("gcc", &[&["-O2", "-g", "other.c", "-o", ".debug/p.debug"], options].concat(), path);
        assert!(ProgramFile::read(&program).expect("a program").debug().is_none(), "{options:?}");
    }
}

/// The build id leads to it, below the folder of another machine.
#[test]
fn a_file_is_found_by_the_build_id_below_a_root() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    let program = built(root, &["-Wl,--build-id=0xabcdef"]);
    let expected = frames(&ProgramFile::read(&program).expect("a program"));
    let debug = root.join("usr/lib/debug/.build-id/ab");
    fs::create_dir_all(&debug).expect("room");
    run("objcopy", &["--only-keep-debug", "p", "usr/lib/debug/.build-id/ab/cdef.debug"], root);
    run("objcopy", &["--strip-all", "p"], root);
    let found = ProgramFile::read_below(&program, Some(root)).expect("a program");
    assert_eq!(frames(&found), expected);
    assert!(ProgramFile::read(&program).expect("a program").debug().is_none());
}

/// Paths come from strangers' recordings; reading a file that the kernel makes up may wait for
/// ever.
#[test]
fn files_of_the_kernel_are_no_programs() {
    let error = ProgramFile::read(Path::new("/proc/version")).err().expect("no program").to_string();
    assert!(error.contains("not a stored file"), "{error}");
}
