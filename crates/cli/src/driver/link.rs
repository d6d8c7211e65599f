//! The link that a command line makes: the file that its linker writes, the code in it that memlode
//! did not compile, and the command that makes the same program again.
//!
//! The compiler itself lists its commands (`-###`): an output may be named to the compiler or to
//! the linker, in a file of arguments or in a configuration file of clang's, and the last one
//! counts.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[cfg(feature = "measure")]
use memlode_measure::link::{KeptLine, OUT, PLACEHOLDERS};

use super::argv;
#[cfg(feature = "measure")]
use super::repeat;
use super::toolchain::Compiler;
use crate::term;

/// A link before it is made.
pub struct Link {
    /// The file that the linker is to write.
    pub output: PathBuf,
    before: Option<Stamp>,
    /// The command that makes the program again, and writes nothing else; `None` if there is none.
    #[cfg(feature = "measure")]
    repeated: Option<(Vec<String>, Vec<usize>)>,
}

/// Changes when a file is written or replaced.
type Stamp = (u64, u64, i64, i64, i64, i64);

fn stamp(file: &Path) -> Option<Stamp> {
    let meta = std::fs::metadata(file).ok().filter(|meta| meta.is_file())?;
    Some((meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec()))
}

impl Link {
    /// Asks the compiler for its commands; `None` if they do not end in a linker that writes a
    /// regular file. Files of arguments are read now: build systems remove them after the link.
    pub fn plan(compiler: &Compiler, line: &[OsString], variables: &[(&str, OsString)]) -> Option<Link> {
        let read = |name: &OsStr| memlode_files::read(Path::new(name), super::RESPONSE).ok();
        let mut command = Command::new(&compiler.path);
        command.arg("-###").args(line).envs(variables.iter().cloned()).env("LC_ALL", "C");
        let asked = command.stdin(Stdio::null()).stdout(Stdio::null()).output().ok()?;
        let linker = jobs(&asked.stderr).pop().filter(|_| asked.status.success())?;
        let is_compiler =
            linker.get(1).is_some_and(|word| ["-cc1", "-cc1as", "-fc1"].iter().any(|own| word == own));
        let linker = argv::flat(&linker, &read).filter(|_| !is_compiler)?;
        let output = PathBuf::from(output(&linker)?);
        // Devices, and descriptors under any name, are not ours to add to.
        if output.starts_with("/dev") || output.starts_with("/proc") {
            return None;
        }
        Some(Link {
            before: stamp(&output),
            output,
            #[cfg(feature = "measure")]
            repeated: argv::flat(line, &read).and_then(|words| again(compiler, words, variables)),
        })
    }

    /// Returns whether the linker has written its output since the plan was made.
    pub fn is_made(&self) -> bool {
        let now = stamp(&self.output);
        now.is_some() && now != self.before
    }

    /// Reports the functions of the output that memlode did not compile, if there are any.
    pub fn tell_foreign(&self) {
        let Ok(Some(code)) = memlode_symbols::foreign_code(&self.output) else { return };
        let file = self.output.to_string_lossy();
        if let Some(note) = memlode_report::notes::foreign(&file, &code).filter(|_| !code.has_libraries) {
            term::note(&memlode_report::render::note(&note));
        }
    }

    /// The line that is left in the program.
    #[cfg(feature = "measure")]
    pub fn line(&self) -> Option<KeptLine> {
        let (words, inputs) = self.repeated.clone()?;
        Some(KeptLine { folder: std::env::current_dir().ok()?, words, inputs })
    }
}

/// The whole command that makes a program again, in words, and which of these are inputs.
#[cfg(feature = "measure")]
fn again(
    compiler: &Compiler,
    line: Vec<String>,
    variables: &[(&str, OsString)],
) -> Option<(Vec<String>, Vec<usize>)> {
    let stands_for_another =
        |word: &String| PLACEHOLDERS.iter().any(|placeholder| word.contains(placeholder));
    if line.iter().any(stands_for_another) {
        return None;
    }
    let mut words = Vec::new();
    if !variables.is_empty() {
        words.push("env".to_owned());
        for (name, value) in variables {
            words.push(format!("{name}={}", value.to_str()?));
        }
    }
    words.push(compiler.path.to_str()?.to_owned());
    words.extend(["-o".to_owned(), OUT.to_owned()]);
    let (rest, inputs) = repeat::line(&line)?;
    let inputs = inputs.into_iter().map(|at| at + words.len()).collect();
    words.extend(rest);
    Some((words, inputs))
}

/// The commands in the output of `-###`: a line each that begins with a blank, every word quoted.
fn jobs(printed: &[u8]) -> Vec<Vec<OsString>> {
    let mut jobs = Vec::new();
    let mut at = 0;
    while at < printed.len() {
        let is_command = printed[at..].starts_with(b" \"");
        let mut words = Vec::new();
        let mut word: Option<Vec<u8>> = None;
        // A quoted word may hold line feeds.
        while at < printed.len() && (word.is_some() || printed[at] != b'\n') {
            match (printed[at], &mut word) {
                (b'"', None) if is_command => word = Some(Vec::new()),
                (b'"', Some(_)) => words.extend(word.take().map(OsString::from_vec)),
                (b'\\', Some(word)) => {
                    at += 1;
                    word.extend(printed.get(at));
                }
                (byte, Some(word)) => word.push(byte),
                _ => {}
            }
            at += 1;
        }
        at += 1;
        if is_command {
            jobs.push(words);
        }
    }
    jobs
}

/// The file that a linker's command names as its output. The last one counts; GNU ld takes the
/// beginnings of long options.
fn output(linker: &[String]) -> Option<String> {
    let mut found = None;
    let mut words = linker.iter().skip(1);
    while let Some(word) = words.next() {
        match output_option(word) {
            Some(Some(joined)) => found = Some(joined.to_owned()),
            Some(None) => found = words.next().cloned(),
            None => {}
        }
    }
    found
}

/// The output that a word of a linker's command names: joined to it, or (`Some(None)`) in the next
/// word.
pub fn output_option(word: &str) -> Option<Option<&str>> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, joined) = match long.split_once('=') {
            Some((name, joined)) => (name, Some(joined)),
            None => (long, None),
        };
        return (name.len() > 1 && "output".starts_with(name)).then_some(joined);
    }
    let joined = word.strip_prefix("-o")?;
    Some((!joined.is_empty()).then_some(joined))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_clang_prints_them() {
        let printed = b"clang version 22\nTarget: x\n \"cc\" \"-cc1\" \"a\\\"b\\\\c\\$d\ne\"\n(in-process)\n \"ld\" \"\" \"x y\"\n";
        let words: Vec<Vec<OsString>> = jobs(printed);
        assert_eq!(words[0], ["cc", "-cc1", "a\"b\\c$d\ne"].map(OsString::from));
        assert_eq!(words[1], ["ld", "", "x y"].map(OsString::from));
        assert_eq!(words.len(), 2);
        for cut in 0..printed.len() {
            jobs(&printed[..cut]);
        }
    }

    #[test]
    fn the_last_output_counts() {
        for (line, named) in [
            ("ld -o a b.o", "a"),
            ("ld -o a -ob c.o", "b"),
            ("ld -o a --output b", "b"),
            ("ld --output=c -o d", "d"),
            ("ld -o a --outp=x --out-implib y", "x"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(output(&words).as_deref(), Some(named), "{line}");
        }
        assert_eq!(
            output(&["ar".into(), "rcs".into(), "-output-is-none".into()]).as_deref(),
            Some("utput-is-none")
        );
        assert_eq!(output(&["ar".into(), "rcsD".into(), "a.out".into()]), None);
    }
}
