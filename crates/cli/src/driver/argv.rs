//! The request of a compiler command line, as far as memlode needs it: does it compile, does it
//! link, and which of our additions did the user set already?
//!
//! The arguments themselves are never rewritten here; they reach clang as they were typed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The last phase that clang will run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Prints something and exits (`--version`, `-print-search-dirs`, …), or has no input at all.
    Information,
    /// `-E`, `-M`, `-MM`.
    Preprocess,
    /// `-fsyntax-only`, `--analyze`, `-emit-ast`, a precompiled header: no code is generated.
    Check,
    /// `-S` or `-c`.
    Compile,
    /// All the way to a program or library.
    Link,
}

/// The request of one command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The last phase.
    pub stage: Stage,
    /// Some input goes through the optimiser: C, C++, Objective-C, Fortran or LLVM IR.
    pub generates_code: bool,
    /// Some input goes through the preprocessor, which looks for headers.
    pub preprocesses: bool,
    /// The program is for a system with the C library musl.
    pub musl: bool,
    /// `-flto` in any form is in force.
    pub lto: bool,
    /// ThinLTO at `-O0`: its link has no place where a plug-in could run.
    pub thin_unoptimised: bool,
    /// `-r`: the output is an object again.
    pub relocatable: bool,
    /// `-static` or `-static-pie`: nothing is loaded at run time.
    pub is_static: bool,
    /// `-shared`: the output is a library.
    pub is_shared: bool,
    /// `-e`, `-nostartfiles` or `-nostdlib`: the program begins in its own way.
    pub own_start: bool,
    /// `-femulated-tls`: thread-local variables are found by calls.
    pub emulated_tls: bool,
    /// `-fsanitize-coverage=`: calls of hooks, which may be the program's own, are added late.
    pub coverage: bool,
    /// `-ffreestanding`: no thread-local storage or loader can be assumed.
    pub freestanding: bool,
    /// A debug level (`-g`, `-g0`, `-ggdb3`, …) was chosen.
    pub debug_level: bool,
    /// `-gsplit-dwarf` is in force: debug information goes to files of its own.
    pub splits_debug: bool,
    /// `--build-id` in any form was passed to the linker.
    pub build_id: bool,
    /// Position of the argument with `--` (itself, or the response file that holds it): all later
    /// arguments are inputs.
    pub double_dash: Option<usize>,
}

/// Response files may name response files; this deep and no deeper.
const RESPONSE_DEPTH: u32 = 16;

/// Options whose value is the next argument. Those that also accept a joined value (`-Idir`) are
/// listed because the bare spelling takes the next one.
const TAKES_NEXT: &[&str] = &[
    "--config",
    "--param",
    "--serialize-diagnostics",
    "--sysroot",
    "-A",
    "-D",
    "-F",
    "-G",
    "-I",
    "-J",
    "-L",
    "-MF",
    "-MJ",
    "-MQ",
    "-MT",
    "-T",
    "-Tbss",
    "-Tdata",
    "-Ttext",
    "-U",
    "-Xanalyzer",
    "-Xassembler",
    "-Xclang",
    "-Xcuda-fatbinary",
    "-Xcuda-ptxas",
    "-Xlinker",
    "-Xopenmp-target",
    "-Xpreprocessor",
    "-arch",
    "-aux-info",
    "-b",
    "-cxx-isystem",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-e",
    "-framework",
    "-idirafter",
    "-iframework",
    "-imacros",
    "-include",
    "-include-pch",
    "-iprefix",
    "-iquote",
    "-isysroot",
    "-isystem",
    "-isystem-after",
    "-ivfsoverlay",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-iwithsysroot",
    "-l",
    "-mllvm",
    "-mmlir",
    "-module-dir",
    "-o",
    "-rpath",
    "-serialize-diagnostics",
    "-specs",
    "-stdlib++-isystem",
    "-target",
    "-u",
    "-working-directory",
    "-wrapper",
    "-x",
    "-z",
];

/// Options that make clang print and exit, with any others.
const INFORMATION: &[&str] =
    &["--version", "--help", "-help", "--help-hidden", "--autocomplete", "-dumpversion", "-dumpmachine"];

/// Reads a command line (without the compiler's own name). `read` gives a response file's content.
pub fn parse(args: &[OsString], read: &dyn Fn(&OsStr) -> Option<Vec<u8>>) -> Request {
    let mut scan = Scan::default();
    let mut flat = Vec::new();
    for (position, arg) in args.iter().enumerate() {
        flatten(arg, position, read, 0, &mut flat);
    }
    scan.run(&flat);
    scan.finish()
}

/// A command line with its response files read; `None` if a part of it is no text.
pub fn flat(args: &[OsString], read: &dyn Fn(&OsStr) -> Option<Vec<u8>>) -> Option<Vec<String>> {
    let mut flat = Vec::new();
    args.iter().for_each(|arg| flatten(arg, 0, read, 0, &mut flat));
    flat.into_iter().map(|(word, _)| String::from_utf8(word).ok()).collect()
}

/// One argument and the position on the command line that brought it.
type Arg = (Vec<u8>, usize);

fn flatten(
    arg: &OsStr,
    position: usize,
    read: &dyn Fn(&OsStr) -> Option<Vec<u8>>,
    depth: u32,
    out: &mut Vec<Arg>,
) {
    let bytes = arg.as_bytes();
    if depth < RESPONSE_DEPTH
        && let Some(file) = bytes.strip_prefix(b"@")
        && let Some(content) = read(OsStr::from_bytes(file))
    {
        for inner in split_response(&content) {
            flatten(&OsString::from_vec(inner), position, read, depth + 1, out);
        }
        return;
    }
    out.push((bytes.to_vec(), position));
}

/// Splits a response file as GCC and clang do: white space separates, quotes group, a backslash
/// takes the next byte as it is.
pub fn split_response(content: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = content.iter().copied();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (_, b'\\') => {
                if let Some(next) = bytes.next() {
                    word.get_or_insert_default().push(next);
                }
            }
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(byte),
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (None, _) if byte.is_ascii_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(byte),
        }
    }
    words.extend(word);
    words
}

#[derive(Default)]
struct Scan {
    language: Option<Vec<u8>>,
    inputs: u32,
    /// Inputs that the optimiser sees, and headers among them.
    code_inputs: u32,
    header_inputs: u32,
    preprocessed_inputs: u32,
    musl: bool,
    information: bool,
    preprocess: bool,
    check: bool,
    compile: bool,
    lto: bool,
    thin: bool,
    unoptimised: bool,
    relocatable: bool,
    is_static: bool,
    is_shared: bool,
    own_start: bool,
    emulated_tls: bool,
    coverage: bool,
    freestanding: bool,
    debug_level: bool,
    splits_debug: bool,
    build_id: bool,
    double_dash: Option<usize>,
}

impl Scan {
    fn run(&mut self, args: &[Arg]) {
        let mut rest = args.iter();
        while let Some((arg, position)) = rest.next() {
            if arg == b"--" {
                self.double_dash = Some(*position);
                for (input, _) in rest {
                    self.input(input);
                }
                return;
            }
            if arg.first() != Some(&b'-') || arg == b"-" {
                self.input(arg);
                continue;
            }
            let text = std::str::from_utf8(arg).unwrap_or("-?");
            let value = takes_next(text).then(|| rest.next()).flatten().map(|(value, _)| value.as_slice());
            self.option(text, value);
        }
    }

    fn option(&mut self, option: &str, value: Option<&[u8]>) {
        match option {
            "-E" | "-M" | "-MM" | "--preprocess" => self.preprocess = true,
            "-fsyntax-only" | "--analyze" | "-emit-ast" | "--precompile" | "-verify-pch" => self.check = true,
            "-S" | "-c" | "--compile" | "--assemble" => self.compile = true,
            "-r" => self.relocatable = true,
            "-static" | "--static" | "-static-pie" => self.is_static = true,
            "-shared" | "--shared" => self.is_shared = true,
            "-e" | "--entry" | "-nostartfiles" | "-nostdlib" => self.own_start = true,
            "-femulated-tls" => self.emulated_tls = true,
            "-fno-emulated-tls" => self.emulated_tls = false,
            coverage if coverage.starts_with("-fsanitize-coverage=") => self.coverage = true,
            "-ffreestanding" => self.freestanding = true,
            "-fhosted" => self.freestanding = false,
            "-flto" => (self.lto, self.thin) = (true, false),
            "-fno-lto" => self.lto = false,
            "-gno-split-dwarf" => self.splits_debug = false,
            split if split.starts_with("-gsplit-dwarf") => self.splits_debug = true,
            "-x" => self.set_language(value.unwrap_or_default()),
            "-target" => self.target(value.unwrap_or_default()),
            "-Xlinker" => self.linker_word(value.unwrap_or_default()),
            _ => self.joined_option(option),
        }
    }

    fn joined_option(&mut self, option: &str) {
        if INFORMATION.contains(&option) || option.starts_with("-print-") || option.starts_with("--print-") {
            self.information = true;
        } else if let Some(how) = option.strip_prefix("-flto=") {
            (self.lto, self.thin) = (true, how == "thin");
        } else if let Some(level) = option.strip_prefix("-O") {
            self.unoptimised = level == "0";
        } else if let Some(language) = option.strip_prefix("-x") {
            self.set_language(language.as_bytes());
        } else if let Some(language) = option.strip_prefix("--language=") {
            self.set_language(language.as_bytes());
        } else if let Some(target) = option.strip_prefix("--target=") {
            self.target(target.as_bytes());
        } else if let Some(words) = option.strip_prefix("-Wl,") {
            words.split(',').for_each(|word| self.linker_word(word.as_bytes()));
        } else if is_debug_level(option) {
            self.debug_level = true;
        } else if option.starts_with("-l") {
            // A library is something to link, but no input of a compile.
            self.inputs += 1;
        }
    }

    fn set_language(&mut self, language: &[u8]) {
        self.language = (language != b"none").then(|| language.to_vec());
    }

    fn target(&mut self, triple: &[u8]) {
        self.musl = triple.windows(4).any(|part| part == b"musl");
    }

    fn linker_word(&mut self, word: &[u8]) {
        self.build_id |= word.starts_with(b"--build-id") || word.starts_with(b"-build-id");
        self.own_start |= word == b"-e" || word.starts_with(b"--entry");
    }

    fn input(&mut self, name: &[u8]) {
        self.inputs += 1;
        let class = match &self.language {
            Some(language) => classify_language(language),
            None => classify_name(name),
        };
        self.code_inputs += u32::from(matches!(class, Class::Code | Class::Preprocessed));
        self.preprocessed_inputs += u32::from(class == Class::Preprocessed);
        self.header_inputs += u32::from(class == Class::Header);
    }

    fn finish(self) -> Request {
        let stage = if self.information || self.inputs == 0 {
            Stage::Information
        } else if self.preprocess {
            Stage::Preprocess
        } else if self.check || self.header_inputs == self.inputs {
            Stage::Check
        } else if self.compile {
            Stage::Compile
        } else {
            Stage::Link
        };
        Request {
            stage,
            generates_code: stage >= Stage::Compile && self.code_inputs > 0,
            preprocesses: stage >= Stage::Preprocess
                && self.code_inputs + self.header_inputs > self.preprocessed_inputs,
            musl: self.musl,
            lto: self.lto,
            thin_unoptimised: self.lto && self.thin && self.unoptimised,
            relocatable: self.relocatable,
            is_static: self.is_static,
            is_shared: self.is_shared,
            own_start: self.own_start,
            emulated_tls: self.emulated_tls,
            coverage: self.coverage,
            freestanding: self.freestanding,
            debug_level: self.debug_level,
            splits_debug: self.splits_debug,
            build_id: self.build_id,
            double_dash: self.double_dash,
        }
    }
}

/// Returns whether an option has its value in the next word.
pub fn takes_next(option: &str) -> bool {
    TAKES_NEXT.binary_search(&option).is_ok() || option.starts_with("-Xarch_")
}

/// `-g` and its levels. Options such as `-gz` or `-gsplit-dwarf` choose a form, not whether there is any.
fn is_debug_level(option: &str) -> bool {
    let Some(rest) = option.strip_prefix("-g") else { return false };
    matches!(
        rest,
        "" | "0" | "1" | "2" | "3" | "full" | "used" | "mlt" | "line-tables-only" | "line-directives-only"
    ) || ["gdb", "lldb", "sce", "dbx", "codeview", "dwarf-", "dwarf"].iter().any(|form| {
        rest.strip_prefix(form)
            .is_some_and(|level| level.is_empty() || level.bytes().all(|b| b.is_ascii_digit()))
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Code,
    /// Code that has no preprocessor to go through any more.
    Preprocessed,
    Header,
    Assembler,
    ForTheLinker,
}

fn classify_language(language: &[u8]) -> Class {
    match language {
        b"assembler" | b"assembler-with-cpp" => Class::Assembler,
        _ if language.ends_with(b"header") => Class::Header,
        b"ir"
        | b"pcm"
        | b"cpp-output"
        | b"c++-cpp-output"
        | b"c++-module-cpp-output"
        | b"objective-c-cpp-output"
        | b"objective-c++-cpp-output" => Class::Preprocessed,
        _ => Class::Code,
    }
}

fn classify_name(name: &[u8]) -> Class {
    if name == b"-" {
        // Without -x only the preprocessor takes it.
        return Class::Code;
    }
    let base = name.rsplit(|&byte| byte == b'/').next().unwrap_or(name);
    let Some(dot) = base.iter().rposition(|&byte| byte == b'.') else {
        return Class::ForTheLinker;
    };
    match &base[dot + 1..] {
        b"c" | b"C" | b"cc" | b"cp" | b"cpp" | b"cxx" | b"c++" | b"CC" | b"CPP" | b"CXX" | b"C++" | b"m"
        | b"mm" | b"M" | b"cppm" | b"ccm" | b"cxxm" | b"c++m" | b"ixx" => Class::Code,
        // A module's .pcm is what the second of two steps compiles.
        b"i" | b"ii" | b"mi" | b"mii" | b"iim" | b"ll" | b"bc" | b"pcm" => Class::Preprocessed,
        // Fortran; in capitals, with a preprocessor.
        b"f" | b"F" | b"for" | b"FOR" | b"ftn" | b"FTN" | b"fpp" | b"FPP" | b"f77" | b"F77" | b"f90"
        | b"F90" | b"f95" | b"F95" | b"f03" | b"F03" | b"f08" | b"F08" | b"f18" | b"F18" => Class::Code,
        b"h" | b"H" | b"hh" | b"hp" | b"hpp" | b"hxx" | b"h++" => Class::Header,
        b"s" | b"S" | b"asm" | b"sx" => Class::Assembler,
        _ => Class::ForTheLinker,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &str) -> Request {
        let args: Vec<OsString> = args.split_whitespace().map(OsString::from).collect();
        parse(&args, &|name| match name.to_str()? {
            "objs" => Some(b"a.o 'b c.o'\n-o \"prog\"".to_vec()),
            "compile" => Some(b"-c x.c".to_vec()),
            "loop" => Some(b"@loop -c".to_vec()),
            _ => None,
        })
    }

    #[test]
    fn options_with_values_are_sorted_for_the_search() {
        assert!(TAKES_NEXT.is_sorted());
    }

    #[test]
    fn the_last_phase() {
        for (args, stage, code) in [
            ("x.c", Stage::Link, true),
            ("-c x.c", Stage::Compile, true),
            ("-S x.c", Stage::Compile, true),
            ("-c x.s", Stage::Compile, false),
            ("-c x.S", Stage::Compile, false),
            ("-E x.c", Stage::Preprocess, false),
            ("-E -", Stage::Preprocess, false),
            ("-M x.c", Stage::Preprocess, false),
            ("-MM x.c -c", Stage::Preprocess, false),
            ("-MD -MF x.d -c x.c", Stage::Compile, true),
            ("-MMD -MT x.o x.c -c", Stage::Compile, true),
            ("-fsyntax-only x.c", Stage::Check, false),
            ("x.h -o x.h.gch", Stage::Check, false),
            ("-x c-header all", Stage::Check, false),
            ("x.c y.h", Stage::Link, true),
            ("--version", Stage::Information, false),
            ("-v", Stage::Information, false),
            ("-v x.c", Stage::Link, true),
            ("-### x.c", Stage::Link, true),
            ("-print-search-dirs", Stage::Information, false),
            ("--print-file-name=libc.so x.c", Stage::Information, false),
            ("-dumpversion", Stage::Information, false),
            ("", Stage::Information, false),
            ("x.o -o x", Stage::Link, false),
            ("-shared x.o -o libx.so", Stage::Link, false),
            ("-o x.c", Stage::Information, false),
            ("-o x.c y.o", Stage::Link, false),
            ("-Xlinker x.c y.o", Stage::Link, false),
            ("-include x.c y.o", Stage::Link, false),
            ("-arch x.c y.o", Stage::Link, false),
            ("-Xclang x.c -c y.s", Stage::Compile, false),
            ("-I x.c -L y.c z.o", Stage::Link, false),
            ("-lfoo", Stage::Link, false),
            ("-x c -", Stage::Link, true),
            ("-xc -c -", Stage::Compile, true),
            ("-x assembler -c foo.c", Stage::Compile, false),
            ("-x c foo -x none bar.o", Stage::Link, true),
            ("-x none bar.o", Stage::Link, false),
            ("@objs", Stage::Link, false),
            ("@compile", Stage::Compile, true),
            ("@missing", Stage::Link, false),
            ("-c -- -odd.c", Stage::Compile, true),
            ("dir.c/obj", Stage::Link, false),
            ("-c x.f90", Stage::Compile, true),
            ("-J x.f90 -module-dir y.F z.o", Stage::Link, false),
        ] {
            let request = read(args);
            assert_eq!((request.stage, request.generates_code), (stage, code), "{args}");
        }
    }

    #[test]
    fn debug_levels() {
        for level in ["-g", "-g0", "-g3", "-ggdb", "-ggdb3", "-gdwarf-5", "-gline-tables-only", "-gmlt"] {
            assert!(read(level).debug_level, "{level}");
        }
        for form in [
            "-gz",
            "-gsplit-dwarf",
            "-gcolumn-info",
            "--gcc-toolchain=/x",
            "-gdwarf64x",
            "-grecord-command-line",
        ] {
            assert!(!read(form).debug_level, "{form}");
        }
        assert!(!read("-o -g x.c").debug_level, "a value is not an option");
    }

    #[test]
    fn later_options_win() {
        assert!(read("-fno-lto -flto=thin x.c").lto);
        assert!(!read("-flto -fno-lto x.c").lto);
        assert!(read("-O2 -O0 -flto -flto=thin x.c").thin_unoptimised);
        for args in ["-flto=thin x.c", "-O0 -O1 -flto=thin x.c", "-O0 -flto=thin -flto x.c", "-O0 x.c"] {
            assert!(!read(args).thin_unoptimised, "{args}");
        }
        assert!(read("-ffreestanding x.c").freestanding);
        assert!(!read("-ffreestanding -fhosted x.c").freestanding);
    }

    #[test]
    fn build_id_is_the_users_when_given() {
        assert!(read("x.c -Wl,-O1,--build-id=none").build_id);
        assert!(read("x.c -Xlinker --build-id").build_id);
        assert!(!read("x.c -Wl,-O1").build_id);
    }

    #[test]
    fn response_files_split_as_gcc_does() {
        assert_eq!(
            split_response(b"-DX=\\\"a\\\" 'one two' \"three\\\"four\"\n\t-c  ''"),
            [&b"-DX=\"a\""[..], b"one two", b"three\"four", b"-c", b""]
        );
    }

    #[test]
    fn a_response_file_that_names_itself_ends() {
        assert_eq!(read("@loop x.c").stage, Stage::Compile);
    }

    #[test]
    fn double_dash_is_found_where_it_stands() {
        assert_eq!(read("-c -- x.c").double_dash, Some(1));
        assert_eq!(read("-o -- x.c").double_dash, None);
    }
}
