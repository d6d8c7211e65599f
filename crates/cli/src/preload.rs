//! Libraries that tell of a program's blocks, sampled or recorded: whether the program can load them, and the way to
//! have them loaded.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use memlode_sample::BlockNotes;
use memlode_symbols::{Loading, loading};

use crate::driver::toolchain::search_path;
use crate::install::Install;
use crate::term;

/// Bits of a file's mode that let a program run as another user or group.
const OTHER_USER: u32 = 0o6000;

/// The library, and the memory for its notes.
pub struct Preload {
    library: PathBuf,
    /// The memory, which is read while the program runs.
    pub notes: BlockNotes,
}

impl Preload {
    /// Makes the memory for notes of blocks of at least `least` bytes. Where there can be no notes, it says why.
    pub fn of(program: &OsStr, least: u64) -> Option<Preload> {
        let made = Install::find().map_err(|why| why.to_string()).and_then(|install| {
            let library = install.blocks();
            obstacle(program, &library).map_or(Ok(()), Err)?;
            let notes = BlockNotes::create(least).map_err(|why| why.to_string())?;
            Ok(Preload { library, notes })
        });
        match made {
            Ok(made) => Some(made),
            Err(why) => {
                tell_none(&why);
                None
            }
        }
    }

    /// Makes a program load the library, before others that it is to load.
    pub fn add_to(&self, command: &mut Command) {
        let mut libraries = OsString::from(&self.library);
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            libraries.push(":");
            libraries.push(others);
        }
        command.env("LD_PRELOAD", libraries).env("MEMLODE_BLOCKS", self.notes.name());
    }
}

/// Returns the variables that make a program say which blocks libraries make for it, while it is recorded. Where it
/// cannot, it says why. The library gives `LD_PRELOAD` back the value that it has here, so the other variable has that.
pub fn of_libraries(program: &OsStr) -> Vec<(&'static str, OsString)> {
    let found = Install::find().map_err(|why| why.to_string()).and_then(|install| {
        let library = install.library_blocks();
        obstacle(program, &library).map_or(Ok(library), Err)
    });
    let library = match found {
        Ok(library) => library,
        Err(why) => {
            term::note(&format!("blocks that libraries make have no names: {why}"));
            return Vec::new();
        }
    };
    let (mut preload, mut before) = (library.into_os_string(), OsString::from("record"));
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        for value in [&mut preload, &mut before] {
            value.push(":");
            value.push(&others);
        }
    }
    vec![("LD_PRELOAD", preload), ("MEMLODE_BLOCKS", before)]
}

/// Makes a process note its blocks from now on, if it was started to do so.
///
/// # Errors
/// In a sentence: why there are no notes.
pub fn of_process(pid: u32, least: u64) -> Result<BlockNotes, String> {
    match BlockNotes::of_process(pid, least) {
        Ok(Some(notes)) => Ok(notes),
        Ok(None) => Err(match Install::find() {
            Ok(install) => format!(
                "the process does not note them. Started with LD_PRELOAD={} MEMLODE_BLOCKS=wait, it notes those that it \
                 allocates while it is sampled",
                install.blocks().display()
            ),
            Err(why) => why.to_string(),
        }),
        Err(why) => Err(why.to_string()),
    }
}

/// Prints that there are no notes.
pub fn tell_none(why: &str) {
    term::note(&format!("heap blocks have no names: {why}"));
}

/// Why a program would not load the library.
fn obstacle(program: &OsStr, library: &Path) -> Option<String> {
    let shown = library.display();
    if !library.exists() {
        return Some(format!("{shown} is not there; build memlode with `make build`, or set MEMLODE_HOME"));
    }
    if library.as_os_str().as_encoded_bytes().iter().any(|byte| b": \t\n".contains(byte)) {
        return Some(format!("a path with a blank or a colon cannot be preloaded, as {shown}"));
    }
    // The system says by itself that there is no such program.
    let path = search_path(program)?;
    let shown = path.display();
    if path.metadata().is_ok_and(|file| file.mode() & OTHER_USER != 0) {
        return Some(format!(
            "{shown} runs as another user or group (setuid), and such programs preload nothing"
        ));
    }
    match loading(&path) {
        Ok(Loading::Static) => {
            Some(format!("{shown} is linked statically, and such programs preload nothing"))
        }
        _ => None,
    }
}
