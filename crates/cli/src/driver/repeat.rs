//! A command line without the options that write files beside its output.
//!
//! Programs are linked again in other orders, long after the build and more than once: what the
//! user's own link has left in a folder (dependencies, maps, temporary files) must stay as it is.
//! These lists let links succeed; `memlode_measure::link` ensures that nothing is written
//! elsewhere, with any options.

use std::path::Path;

use super::argv;
use super::link::output_option;

/// Options of the compiler that name a file in the next word, or after the last letter.
const NAMING: &[&str] = &["-MF", "-MT", "-MQ", "-MJ", "-o"];

/// The same, with the name in the next word only.
const NAMING_NEXT: &[&str] = &[
    "--output",
    "--serialize-diagnostics",
    "-aux-info",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-serialize-diagnostics",
];

/// Options of the compiler that write files beside the output.
const ALONE: &[&str] = &[
    "--write-dependencies",
    "--write-user-dependencies",
    "-M",
    "-MD",
    "-MG",
    "-MM",
    "-MMD",
    "-MP",
    "-MV",
    "-fdump-record-layouts",
    "-fstack-usage",
    "-gen-reproducer",
    "-ftest-coverage",
];

/// Beginnings of such options.
const BEGINNINGS: &[&str] = &[
    "--output=",
    "-Wp,-M",
    "-fcallgraph-info",
    "-fcrash-diagnostics",
    "-fdiagnostics-add-output=",
    "-fdump-",
    "-foptimization-record-",
    "-fproc-stat-report",
    "-fsave-optimization-record",
    "-ftime-trace",
    "-gen-reproducer=",
    "-save-stats",
];

/// Options of linkers (after one or two dashes) with a file in the same or in the next word.
const LINKER_NAMING: &[&str] = &[
    "Map",
    "dependency-file",
    "lto-obj-path",
    "opt-remarks-filename",
    "out-implib",
    "print-archive-stats",
    "print-gc-sections-file",
    "print-symbol-order",
    "reproduce",
    "thinlto-cache-dir",
    "thinlto-cache-policy",
    "why-extract",
];

/// Options of linkers that write files, or nothing but text to read.
const LINKER_ALONE: &[&str] = &[
    "M",
    "cref",
    "print-map",
    "save-temps",
    "stats",
    "t",
    "thinlto-emit-imports-files",
    "thinlto-emit-index-files",
    "time-trace",
    "trace",
    "verbose",
];

/// Beginnings of such options.
const LINKER_BEGINNINGS: &[&str] = &[
    "plugin-opt=cache-dir=",
    "plugin-opt=obj-path=",
    "plugin-opt=opt-remarks-",
    "plugin-opt=save-temps",
    "plugin-opt=stats-file=",
    "save-temps=",
    "time-trace",
];

/// The words of a command line that make its output, without the name of that, and which of them
/// are inputs that can stand in another order. `None` if it cannot be repeated: an input comes from
/// a pipe.
pub fn line(words: &[String]) -> Option<(Vec<String>, Vec<usize>)> {
    let mut kept = Line::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--" {
            kept.words.push(word.clone());
            words.by_ref().for_each(|input| kept.input(input));
        } else if word == "-" || word == "-###" {
            return None;
        } else if !word.starts_with('-') {
            kept.input(word);
        } else if let Some(linker) = word.strip_prefix("-Wl,") {
            linker.split(',').for_each(|word| kept.linker(word));
        } else if word == "-Xlinker" {
            words.next().into_iter().for_each(|word| kept.linker(word));
        } else if NAMING_NEXT.contains(&word.as_str()) || NAMING.contains(&word.as_str()) {
            words.next();
        } else if word.starts_with("-save-temps") || word.starts_with("--save-temps") {
            // What is compiled from a preprocessed file is another program: the files go beside the output.
            kept.words.push("-save-temps=obj".to_owned());
        } else if !writes_beside(word) {
            kept.mixes_languages |= word.starts_with("-x") || word.starts_with("--language=");
            kept.words.push(word.clone());
            if argv::takes_next(word) {
                kept.words.extend(words.next().cloned());
            }
        }
    }
    let inputs = if kept.mixes_languages { Vec::new() } else { kept.inputs };
    Some((kept.words, inputs))
}

fn writes_beside(word: &str) -> bool {
    // Of the other options only Objective-C's begin so.
    let is_joined = |name: &&str| word.starts_with(name) && !word.starts_with("-obj");
    ALONE.contains(&word)
        || BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
        || NAMING.iter().any(is_joined)
}

/// `name` is an option of a linker without its dashes.
fn linker_writes_beside(name: &str) -> bool {
    LINKER_ALONE.contains(&name)
        || LINKER_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || name.split_once('=').is_some_and(|(name, _)| LINKER_NAMING.contains(&name))
}

#[derive(Default)]
struct Line {
    words: Vec<String>,
    inputs: Vec<usize>,
    /// The kind of an input depends on the options before it.
    mixes_languages: bool,
    /// The next word for the linker is a name that is not wanted.
    skips: bool,
}

impl Line {
    fn input(&mut self, word: &str) {
        self.inputs.push(self.words.len());
        self.words.push(word.to_owned());
    }

    fn linker(&mut self, word: &str) {
        if std::mem::take(&mut self.skips) {
            return;
        }
        let files = word
            .strip_prefix('@')
            .and_then(|file| memlode_files::read(Path::new(file), super::RESPONSE).ok());
        if let Some(words) = files {
            for word in argv::split_response(&words) {
                self.linker(&String::from_utf8_lossy(&word));
            }
            return;
        }
        let name = word.strip_prefix("--").or(word.strip_prefix('-')).unwrap_or_default();
        if let Some(joined) = output_option(word) {
            self.skips = joined.is_none();
        } else if LINKER_NAMING.contains(&name) {
            self.skips = true;
        } else if !linker_writes_beside(name) {
            self.words.extend(["-Xlinker".to_owned(), word.to_owned()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_makes_the_program_and_nothing_else() {
        for (given, left) in [
            ("-O2 a.c b.c -o prog", "-O2 a.c b.c"),
            ("a.o -oprog --output p --output=q", "a.o"),
            ("-MD -MF deps.d -MT a.o -MTb.o a.c", "a.c"),
            ("a.c -Wl,-Map=prog.map,--cref,-z,now", "a.c -Xlinker -z -Xlinker now"),
            ("a.c -Wl,-Map,prog.map -Xlinker -o -Xlinker p b.c", "a.c b.c"),
            ("a.c -Wl,-o,p -Wl,--output=q -Wl,--dependency-file=d", "a.c"),
            ("--save-temps -ftime-trace=x -fstack-usage -Wp,-MMD,x.d a.c", "-save-temps=obj a.c"),
            ("-include x.c -I inc a.c -L b.o", "-include x.c -I inc a.c -L b.o"),
        ] {
            let given: Vec<String> = given.split(' ').map(str::to_owned).collect();
            assert_eq!(line(&given).expect("a line").0.join(" "), left, "{given:?}");
        }
        let of = |text: &str| line(&text.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let (words, inputs) = of("-include x.c a.c -MT b.o c.o").expect("a line");
        assert_eq!(inputs.iter().map(|at| words[*at].as_str()).collect::<Vec<_>>(), ["a.c", "c.o"]);
        assert!(of("-x c a.c b.o").expect("a line").1.is_empty());
        assert_eq!(of("-x c -"), None);
    }
}
