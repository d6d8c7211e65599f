//! The destination of a trace during the recording, and its use afterwards.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use memlode_collect::Switch;
use memlode_collect::private::PrivateDirectory;
use memlode_files::Folder;
use memlode_trace::Error as TraceError;
use memlode_trace::write::DirectoryStore;
use memlode_wire::{Address, RemoteStore, Token};

use crate::live::Beside;

/// The variable that holds a token. The traced program never sees it.
pub const TOKEN: &str = "MEMLODE_TOKEN";

/// Returns whether a file's name means standard output.
pub fn is_stdout(to: &Path) -> bool {
    to == Path::new("-")
}

/// Makes a directory for a trace, which may take another trace's place.
pub fn created(directory: &Path, replace: bool) -> Result<DirectoryStore> {
    DirectoryStore::create(directory, replace).map_err(|error| match &error {
        TraceError::Occupied { by_trace: true, .. } => {
            anyhow!("{error} with -o, or have --force replace it")
        }
        TraceError::Occupied { .. } => anyhow!("{error} with -o"),
        _ => error.into(),
    })
}

/// A file system in memory.
const MEMORY: &str = "/dev/shm";

/// The place that `--to` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// Files, as without the option.
    Directory,
    /// Memory: a directory of files in a file system without a disk.
    Ram,
    /// Text, one event a line, once the program has ended.
    Text,
    /// `memlode serve`.
    Remote(Address),
}

impl FromStr for To {
    type Err = String;

    fn from_str(text: &str) -> Result<To, String> {
        Ok(match text {
            "directory" => To::Directory,
            "ram" => To::Ram,
            "text" => To::Text,
            address => {
                To::Remote(address.parse().map_err(|_| {
                    "expected directory, ram, text, tcp://HOST:PORT or unix:///PATH".to_owned()
                })?)
            }
        })
    }
}

impl std::fmt::Display for To {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            To::Directory => f.write_str("directory"),
            To::Ram => f.write_str("ram"),
            To::Text => f.write_str("text"),
            To::Remote(address) => address.fmt(f),
        }
    }
}

/// The token of a file or of the environment, if there is one.
pub fn token(file: Option<&Path>) -> Result<Option<Token>> {
    let Some(file) = file else {
        let Some(text) = std::env::var_os(TOKEN).filter(|text| !text.is_empty()) else { return Ok(None) };
        return Token::new(text.as_encoded_bytes())
            .map(Some)
            .map_err(|why| anyhow::anyhow!("{TOKEN}: {why}"));
    };
    let name = file.display();
    let meta = fs::metadata(file).with_context(|| format!("--token-file {name}"))?;
    if meta.permissions().mode() & 0o077 != 0 {
        bail!("--token-file {name}: others may read it; `chmod 600 {name}` first");
    }
    let text = memlode_files::read(file, 1 << 16).with_context(|| format!("--token-file {name}"))?;
    Token::new(&text).map(Some).map_err(|why| anyhow::anyhow!("--token-file {name}: {why}"))
}

/// Connects to a receiver.
pub fn remote(address: &Address, token_file: Option<&Path>) -> Result<RemoteStore> {
    let token = match (token(token_file)?, address) {
        (Some(token), _) => token,
        (None, Address::Unix(_)) => Token::none(),
        (None, Address::Tcp(_)) => {
            bail!("--to {address} needs the receiver's token: set {TOKEN}, or name a file with --token-file")
        }
    };
    Ok(RemoteStore::connect(address, &token)?)
}

/// The place of a recording's trace, and its use afterwards.
pub enum Place {
    /// A directory that is kept.
    Directory(PathBuf),
    /// Memory, and perhaps a directory that the trace is copied to in the end.
    Memory(InMemory, Option<DirectoryStore>),
    /// Memory, and then text: in a file or on standard output.
    Text(InMemory, Option<PathBuf>),
    /// Another process.
    Remote(Address),
    /// An analysis of it, and perhaps a directory as well.
    Beside(Box<Beside>),
    /// It is thrown away.
    Nowhere,
}

impl Place {
    /// The trace directory, if it is one of ours.
    pub fn trace(&self) -> Option<&Path> {
        match self {
            Place::Directory(directory) => Some(directory),
            Place::Memory(memory, _) | Place::Text(memory, _) => Some(&memory.trace),
            Place::Beside(beside) => beside.kept.as_deref(),
            Place::Remote(_) | Place::Nowhere => None,
        }
    }

    /// The directory that is removed in the end.
    pub fn scratch(&self) -> Option<&Path> {
        match self {
            Place::Memory(memory, _) | Place::Text(memory, _) => Some(memory.directory.path()),
            Place::Directory(_) | Place::Remote(_) | Place::Beside(_) | Place::Nowhere => None,
        }
    }

    /// Returns the closure that brings a recording to its end soon, if anything of it is to be
    /// saved.
    pub fn hurry(&self, switch: Switch) -> Option<Box<dyn Fn() + Send>> {
        match self {
            Place::Beside(beside) => {
                let give_up = beside.giving_up()?;
                Some(Box::new(move || {
                    give_up();
                    switch.end_waiting();
                }))
            }
            _ => Some(Box::new(move || switch.end_waiting())),
        }
    }

    /// Returns in words where the incomplete trace is.
    pub fn partly(&self) -> String {
        match (self, self.kept()) {
            (Place::Remote(_), _) => "stopped; the receiver keeps what was sent until then".to_owned(),
            (Place::Memory(..), _) | (_, None) => "stopped; no trace is kept".to_owned(),
            (_, Some(directory)) => {
                format!("stopped; what was written until then is in {}", directory.display())
            }
        }
    }

    /// Removes the files of a trace that is of no use.
    pub fn remove(self) -> Result<()> {
        let made = match self {
            Place::Directory(directory) => Some(directory),
            Place::Memory(_, kept) => kept.map(|kept| kept.path().to_owned()),
            Place::Beside(beside) => beside.kept,
            Place::Text(..) | Place::Remote(_) | Place::Nowhere => None,
        };
        let remove = |directory: PathBuf| {
            fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {}", directory.display()))
        };
        made.map_or(Ok(()), remove)
    }

    /// Moves the trace to its final place.
    pub fn settle(&self) -> Result<()> {
        match self {
            Place::Memory(memory, Some(kept)) => copy(&memory.trace, kept.path()),
            Place::Text(memory, file) => text(&memory.trace, file.as_deref()),
            _ => Ok(()),
        }
    }

    /// The directory that is kept.
    pub fn kept(&self) -> Option<&Path> {
        match self {
            Place::Directory(directory) => Some(directory),
            Place::Memory(_, Some(kept)) => Some(kept.path()),
            Place::Beside(beside) => beside.kept.as_deref(),
            Place::Memory(_, None) | Place::Text(..) | Place::Remote(_) | Place::Nowhere => None,
        }
    }
}

/// Writes the events of a trace as `memlode dump` does.
fn text(trace: &Path, file: Option<&Path>) -> Result<()> {
    let Some(file) = file else { return crate::commands::dump::events(trace, std::io::stdout().lock()) };
    let mut options = fs::OpenOptions::new();
    let out = options.write(true).create(true).truncate(true).mode(0o600).open(file);
    crate::commands::dump::events(trace, out.with_context(|| format!("cannot write {}", file.display()))?)
}

/// A trace directory in memory, removed when this is dropped.
pub struct InMemory {
    directory: PrivateDirectory,
    trace: PathBuf,
}

impl InMemory {
    /// Makes a directory of our own, and a store in it of at most this many bytes; by default half
    /// of the free memory.
    pub fn create(limit: Option<u64>) -> Result<(InMemory, DirectoryStore)> {
        let memory = Path::new(MEMORY);
        let directory = PrivateDirectory::create_in(memory)
            .with_context(|| format!("--to ram uses {MEMORY}, which cannot be used"))?;
        // Behind the removal of what others have left.
        let free = rustix::fs::statvfs(memory)
            .with_context(|| format!("--to ram uses {MEMORY}, which cannot be used"))?;
        let limit = limit.unwrap_or(free.f_bavail.saturating_mul(free.f_frsize) / 2);
        let trace = directory.path().join("trace");
        let store = DirectoryStore::create(&trace, false)?.limited_to(limit);
        Ok((InMemory { directory, trace }, store))
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let from = Folder::open(from).with_context(|| format!("cannot read {}", from.display()))?;
    let target = Folder::open(to).with_context(|| format!("cannot write {}", to.display()))?;
    from.copy_to(&target).map_err(|(name, error)| {
        anyhow::Error::new(error).context(format!("cannot copy the trace to {}", to.join(name).display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_shown_as_they_are_typed() {
        for text in ["directory", "ram", "text", "tcp://h:1", "unix:///s"] {
            assert_eq!(text.parse::<To>().map(|to| to.to_string()).as_deref(), Ok(text));
        }
        assert!("disk".parse::<To>().is_err());
    }
}
