//! The link line that `memlode cc` leaves in a program: behind its last byte, where no loader or
//! linker looks.
//!
//! ```text
//! ELF file │ JSON: {"folder": …, "words": […], "inputs": […]} │ its length, u64 little endian │ "memlode link 2\n"
//! ```

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use memlode_symbols::objects::load_alike;
use serde::{Deserialize, Serialize};

use super::{LinkLine, OUT};
use crate::Error;

const MAGIC: &[u8] = b"memlode link 2\n";
/// More than this is no link line.
const MOST_BYTES: u64 = 16 << 20;
/// Inputs that are permuted: objects, and sources that the same command compiles.
const INPUTS: [&str; 9] = ["o", "c", "cc", "cpp", "cxx", "C", "f90", "f", "F90"];

/// The command that makes a program, and writes nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptLine {
    /// Folder in which it runs.
    pub folder: PathBuf,
    /// All of it, with `{out}` for the program.
    pub words: Vec<String>,
    /// Positions of words that are inputs.
    pub inputs: Vec<usize>,
}

/// Leaves the command that linked a program in it. Does nothing if the file is no ELF file, or has
/// a line already.
///
/// # Errors
/// If the program is not there, or cannot be read or written.
pub fn keep(program: &Path, line: &KeptLine) -> io::Result<()> {
    if !fs::metadata(program)?.is_file() || read(program)?.is_some() {
        return Ok(());
    }
    let mut file = OpenOptions::new().read(true).append(true).open(program)?;
    let mut magic = [0; 4];
    if file.read_exact(&mut magic).is_err() || magic != *b"\x7fELF" {
        return Ok(());
    }
    let mut bytes = serde_json::to_vec(line)?;
    let length = bytes.len() as u64;
    bytes.extend(length.to_le_bytes());
    bytes.extend(MAGIC);
    file.write_all(&bytes)
}

/// The line in a program, and how many bytes the program has without it.
fn read(program: &Path) -> io::Result<Option<(KeptLine, u64)>> {
    let mut file = memlode_files::open(program)?;
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
    /// The line that `memlode cc` left in a program; `None` if there is none, or nothing in it can
    /// be varied.
    ///
    /// # Errors
    /// If the program cannot be read, or if linking it again makes another one: its objects have
    /// changed or are gone.
    pub fn kept(program: &Path) -> Result<Option<LinkLine>, Error> {
        let file = |source| Error::File { path: program.to_owned(), source };
        let Some((kept, bytes)) = read(program).map_err(file)? else { return Ok(None) };
        let has_program = kept.words.iter().any(|word| word.contains(OUT));
        if !has_program || kept.inputs.iter().any(|at| *at >= kept.words.len()) {
            return Ok(None);
        }
        let line = LinkLine::of(kept.words, Some(kept.folder), &INPUTS, Some(&kept.inputs))?;
        if !line.can_vary() {
            return Ok(None);
        }
        let system = |source| Error::System { doing: "cannot make a temporary folder", source };
        let folder = tempfile::Builder::new().prefix("memlode-link-").tempdir().map_err(system)?;
        let again = memlode_files::read(&line.link(0, folder.path())?, u64::MAX).map_err(file)?;
        let whole = memlode_files::read(program, u64::MAX).map_err(file)?;
        match whole.get(..bytes as usize).is_some_and(|whole| load_alike(whole, &again)) {
            true => Ok(Some(line)),
            false => Err(Error::Usage(format!(
                "the command that linked {} makes another program now: link it again",
                program.display()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_survives_and_damage_is_no_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("program");
        let words = ["cc", "-o", "{out}", "a.o", "b.o"].map(str::to_owned);
        let line = KeptLine { folder: folder.path().to_owned(), words: words.to_vec(), inputs: vec![3, 4] };
        fs::write(&program, b"\x7fELF and more").expect("a file");
        assert!(read(&program).expect("read").is_none());
        keep(&program, &line).expect("kept");
        let (kept, bytes) = read(&program).expect("read").expect("a line");
        assert_eq!((kept, bytes), (line.clone(), 13));
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
        keep(&program, &line).expect("nothing done");
        assert_eq!(fs::read(&program).expect("a file").len(), 10);
        assert!(keep(Path::new("/dev/null"), &line).is_ok());
    }
}
