//! The link line that `memlode cc` leaves in a program: behind its last byte, where no loader or linker looks.
//!
//! ```text
//! ELF file │ JSON: {"folder": …, "words": […]} │ its length, u64 little endian │ "memlode link 1\n"
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};
use serde::{Deserialize, Serialize};

use super::{LinkLine, OUT};
use crate::Error;

const MAGIC: &[u8] = b"memlode link 1\n";
/// More than this is no link line.
const MOST_BYTES: u64 = 16 << 20;
/// Inputs that are permuted: objects, and sources that the same command compiles.
const INPUTS: [&str; 9] = ["o", "c", "cc", "cpp", "cxx", "C", "f90", "f", "F90"];

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    folder: PathBuf,
    words: Vec<String>,
}

/// Leaves the command that linked a program in it. `words` are the whole command with its response files read, run in
/// `folder`. Does nothing to what is no ELF file, such as `/dev/null`, or has a line already.
///
/// # Errors
/// If the program is not there, or cannot be read or written.
pub fn keep(folder: &Path, words: &[String]) -> io::Result<()> {
    let name = output(words).map_or("a.out", |(at, before)| &words[at][before.len()..]);
    let program = &folder.join(name);
    if !fs::metadata(program)?.is_file() || read(program)?.is_some() {
        return Ok(());
    }
    let mut file = OpenOptions::new().read(true).append(true).open(program)?;
    let mut magic = [0; 4];
    if file.read_exact(&mut magic).is_err() || magic != *b"\x7fELF" {
        return Ok(());
    }
    let mut bytes = serde_json::to_vec(&Kept { folder: folder.to_owned(), words: words.to_vec() })?;
    let length = bytes.len() as u64;
    bytes.extend(length.to_le_bytes());
    bytes.extend(MAGIC);
    file.write_all(&bytes)
}

/// The line in a program, and how many bytes the program has without it.
fn read(program: &Path) -> io::Result<Option<(Kept, u64)>> {
    let mut file = File::open(program)?;
    let all = file.metadata()?.len();
    let tail = 8 + MAGIC.len() as u64;
    let Some(end) = all.checked_sub(tail) else { return Ok(None) };
    file.seek(SeekFrom::Start(end))?;
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let mut magic = Vec::new();
    file.read_to_end(&mut magic)?;
    let length = u64::from_le_bytes(length);
    let Some(start) = end.checked_sub(length).filter(|_| magic == MAGIC && length <= MOST_BYTES) else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(start))?;
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text).ok().map(|kept| (kept, start)))
}

impl LinkLine {
    /// The line that `memlode cc` left in a program; `None` if there is none, or nothing in it can be varied.
    ///
    /// # Errors
    /// If the program cannot be read, or if linking it again makes another one: its objects have changed or are gone.
    pub fn kept(program: &Path) -> Result<Option<LinkLine>, Error> {
        let file = |source| Error::File { path: program.to_owned(), source };
        let Some((kept, bytes)) = read(program).map_err(file)? else { return Ok(None) };
        let line = LinkLine::of(with_placeholder(kept.words), Some(kept.folder), &INPUTS)?;
        if !line.can_vary() {
            return Ok(None);
        }
        let system = |source| Error::System { doing: "cannot make a temporary folder", source };
        let folder = tempfile::Builder::new().prefix("memlode-link-").tempdir().map_err(system)?;
        let again = fs::read(line.link(0, folder.path())?).map_err(file)?;
        let whole = fs::read(program).map_err(file)?;
        match whole.get(..bytes as usize).is_some_and(|program| are_one(program, &again)) {
            true => Ok(Some(line)),
            false => Err(Error::Usage(format!(
                "the command that linked {} makes another program now: link it again",
                program.display()
            ))),
        }
    }
}

/// Sections that tell how a program was made: of a line that compiles, too, the name of its output is among them.
const OF_MAKING: [&str; 2] = [".GCC.command.line", ".note.gnu.build-id"];

/// Returns whether two images are one program: all of their sections agree but for those that tell how they were made.
fn are_one(one: &[u8], other: &[u8]) -> bool {
    let sections = |image| -> Option<Vec<(String, u64, Vec<u8>)>> {
        let image = object::File::parse(image).ok()?;
        let kept =
            image.sections().filter(|section| !section.name().is_ok_and(|name| OF_MAKING.contains(&name)));
        kept.map(|section| {
            Some((section.name().ok()?.to_string(), section.address(), section.data().ok()?.to_vec()))
        })
        .collect()
    };
    one == other || sections(one).is_some_and(|found| sections(other) == Some(found))
}

/// The word that names the program which a command makes, and what stands before the name in it: `-o` or nothing.
fn output(words: &[String]) -> Option<(usize, &'static str)> {
    // The last one counts. Clang has longer options that begin so.
    let is_joined = |word: &str| word.starts_with("-o") && word.len() > 2 && !word.starts_with("-object");
    (1..words.len()).rev().find_map(|at| match words[at].as_str() {
        _ if words[at - 1] == "-o" => Some((at, "")),
        word if is_joined(word) => Some((at, "-o")),
        _ => None,
    })
}

/// With `{out}` in place of the program's name.
fn with_placeholder(mut words: Vec<String>) -> Vec<String> {
    match output(&words) {
        Some((at, before)) => words[at] = format!("{before}{OUT}"),
        None => words.extend(["-o".into(), OUT.into()]),
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_survives_and_damage_is_no_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("program");
        let words = ["cc", "a.o", "b.o", "-oprogram"].map(str::to_owned);
        fs::write(&program, b"\x7fELF and more").expect("a file");
        assert!(read(&program).expect("read").is_none());
        keep(folder.path(), &words).expect("kept");
        let (kept, bytes) = read(&program).expect("read").expect("a line");
        assert_eq!((kept.words, bytes), (words.to_vec(), 13));
        // Whatever is cut off or changed: no line, and no panic.
        let whole = fs::read(&program).expect("a file");
        for at in 0..whole.len() {
            fs::write(&program, &whole[..at]).expect("a file");
            assert!(read(&program).expect("read").is_none(), "{at}");
            let mut other = whole.clone();
            other[at] ^= 0xff;
            fs::write(&program, &other).expect("a file");
            let _ = read(&program).expect("read");
        }
        fs::write(&program, b"#!/bin/sh\n").expect("a file");
        keep(folder.path(), &words).expect("nothing done");
        assert_eq!(fs::read(&program).expect("a file").len(), 10);
        let nowhere = ["cc", "a.o", "-o", "/dev/null"].map(str::to_owned);
        assert!(keep(folder.path(), &nowhere).is_ok());
    }

    #[test]
    fn the_output_is_found() {
        let of = |line: &str| with_placeholder(line.split(' ').map(str::to_owned).collect()).join(" ");
        assert_eq!(of("cc a.o -o x b.o"), "cc a.o -o {out} b.o");
        assert_eq!(of("cc a.o -ox"), "cc a.o -o{out}");
        assert_eq!(of("cc a.o"), "cc a.o -o {out}");
    }
}
