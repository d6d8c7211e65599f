use std::fs;
use std::path::PathBuf;
use std::process::Command;

use proptest::prelude::*;

use super::*;
use crate::ProgramFile;

const PROGRAM: &str = r#"
struct pair { long left, right; };
volatile long sum;
static inline __attribute__((always_inline)) long add(struct pair *p) { return p->left
    + p->right; }
static inline __attribute__((always_inline)) void twice(struct pair *p) { sum += add(p); sum += add(p + 1); }
int main(int argc, char **argv) {
    struct pair pairs[4] = {{argc, 1}, {2, 3}, {4, argc}, {6, 7}};
    for (int i = 0; i < argc * 3; i++)
        twice(&pairs[i & 1]);
    return (int)sum + argv[0][0];
}
"#;

fn built(folder: &Path, compiler: &str, options: &[&str]) -> PathBuf {
    let (source, program) = (folder.join("p.c"), folder.join("p"));
    fs::write(&source, PROGRAM).unwrap();
    let mut command = Command::new(compiler);
    command.current_dir(folder).args(["-O2", "-g"]).args(options).arg(&source).arg("-o").arg(&program);
    assert!(command.status().unwrap().success());
    program
}

/// Function, file, line and column of each frame, as `llvm-symbolizer` prints them.
fn symbolized(program: &Path, addresses: &[u64]) -> Vec<Vec<String>> {
    let mut command = Command::new("llvm-symbolizer-22");
    command.args(["--no-demangle", "--functions=linkage", "--inlines", "--addresses", "-e"]).arg(program);
    command.args(addresses.iter().map(|address| format!("{address:#x}")));
    let output = command.output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let blocks = text.trim_end().split("\n\n");
    blocks
        .map(|block| {
            let lines: Vec<&str> = block.lines().skip(1).collect();
            // Code that belongs to no line has no column.
            let without = |pair: String| match pair.split_once(":0:") {
                Some((place, _)) => format!("{place}:0:0"),
                None => pair,
            };
            lines.chunks(2).map(|pair| without(pair.join(" "))).collect()
        })
        .collect()
}

/// Every instruction of main has the frames that LLVM's own reader gives it.
#[test]
fn frames_are_those_of_llvm_symbolizer() {
    for (compiler, options) in [
        ("clang-22", &[][..]),
        ("clang-22", &["-gdwarf-4", "-no-pie"]),
        ("clang-22", &["-gsplit-dwarf"]),
        ("gcc", &["-gdwarf-5"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let program = built(folder.path(), compiler, options);
        let file = ProgramFile::read(&program).unwrap();
        let main = file.functions().iter().find(|symbol| symbol.name == "main").unwrap();
        let mut addresses = vec![main.address];
        while let Some(next) = addresses.last().and_then(|at| {
            let code = file.bytes_at(*at, crate::instruction::LONGEST);
            crate::Instruction::decode(code, *at).map(|instruction| instruction.next())
        }) {
            if next >= main.address + main.bytes {
                break;
            }
            addresses.push(next);
        }
        assert!(addresses.len() > 20, "{compiler} {options:?}");
        let shown = |address: &u64| -> Vec<String> {
            let frames = file.debug().unwrap().frames(*address).unwrap();
            let one = |frame: DebugFrame| {
                let position = frame.position.unwrap();
                let function = frame.function.unwrap();
                format!("{function} {}:{}:{}", position.file, position.line, position.column)
            };
            frames.into_iter().map(one).collect()
        };
        let ours: Vec<Vec<String>> = addresses.iter().map(shown).collect();
        assert!(ours.iter().any(|frames| frames.len() == 3), "inlined twice: {compiler} {options:?}");
        assert_eq!(ours, symbolized(&program, &addresses), "{compiler} {options:?}");
    }
}

#[test]
fn damaged_information_never_panics() {
    let folder = tempfile::tempdir().unwrap();
    let path = built(folder.path(), "clang-22", &["-gdwarf-4"]);
    let program = fs::read(&path).unwrap();
    let main = ProgramFile::read(&path).unwrap();
    let main = main.functions().iter().find(|symbol| symbol.name == "main").unwrap().address;
    let image = object::File::parse(&*program).unwrap();
    let sections: Vec<(u64, u64)> =
        [".debug_info", ".debug_abbrev", ".debug_line", ".debug_ranges", ".debug_loc"]
            .iter()
            .filter_map(|name| object::Object::section_by_name(&image, name))
            .filter_map(|section| object::ObjectSection::file_range(&section))
            .collect();
    assert!(sections.len() >= 4, "{sections:?}");
    let damage = prop::collection::vec((0..sections.len(), any::<u64>(), any::<u8>()), 1..8);
    let mut runner = proptest::test_runner::TestRunner::default();
    runner
        .run(&damage, |flips| {
            let mut bytes = program.clone();
            for (section, at, value) in flips {
                let (from, length) = sections[section];
                bytes[(from + at % length) as usize] = value;
            }
            let file = ProgramFile::parse(bytes, &path).unwrap();
            if let Some(debug) = file.debug() {
                for address in main..main + 64 {
                    let _ = debug.frames(address);
                }
                let _ = (debug.position(main), debug.positions().count(), debug.frame_variable(main, -24));
            }
            Ok(())
        })
        .unwrap();
}

/// A unit whose entries are nested a million deep: one byte each. Following them would use up the
/// stack.
#[test]
fn entries_without_end_are_refused() {
    let abbreviations = [1, 0x11, 1, 0, 0, 2, 0x1d, 1, 0, 0, 0];
    let nested = vec![2_u8; 1 << 20];
    let mut unit = vec![4, 0, 0, 0, 0, 0, 8, 1];
    unit.extend(&nested);
    let mut info = (unit.len() as u32).to_le_bytes().to_vec();
    info.extend(&unit);
    let split = info.len();
    let bytes: Arc<[u8]> = [info, abbreviations.to_vec()].concat().into();
    let whole = Slice::new(bytes.clone(), RunTimeEndian::Little);
    let section = |name: &str| match name {
        ".debug_info" => Some(whole.range(0..split)),
        ".debug_abbrev" => Some(whole.range(split..bytes.len())),
        _ => None,
    };
    let debug = Debug::load(Path::new("p"), &section).unwrap();
    let error = debug.frames(0).unwrap_err().to_string();
    assert!(error.contains("nested more than 400 deep"), "{error}");
}
