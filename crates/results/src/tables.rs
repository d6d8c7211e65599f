//! Tables that are kept beside a trace for those who analyse it in parts.
//!
//! ```text
//!   0       8      12                                             DIR/results/past-64-07.mlk
//!   │ magic │CRC-32│ version of the code, trace, name │ the table
//! ```

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memlode_files::Folder;
use memlode_trace::{KeptTables, Trace};

use crate::identity::TraceIdentity;
use crate::{FOLDER, MEMLODE, is_off};

/// The first bytes of every table.
const MAGIC: [u8; 8] = *b"mlkept\r\n";

/// Bytes in front of what the checksum is of.
const HEAD: usize = MAGIC.len() + 4;

/// Bytes of the largest table that is written and read.
const MOST: u64 = 256 << 20;

/// The tables beside a trace, as it is now.
#[derive(Debug)]
struct Tables {
    folder: Folder,
    trace: TraceIdentity,
}

/// The place of tables beside a trace; `None` if none can be kept, as for answers, or none shall
/// be.
pub fn tables(trace: &Trace) -> Option<Arc<dyn KeptTables>> {
    if is_off() {
        return None;
    }
    let identity = TraceIdentity::of(trace)?;
    let folder = Folder::open(trace.directory()).ok()?;
    Some(Arc::new(Tables { folder, trace: identity }))
}

impl Tables {
    fn file(name: &str) -> PathBuf {
        Path::new(FOLDER).join(format!("{name}.mlk"))
    }

    /// The part of a table's file that says what it is of.
    fn subject(&self, name: &str) -> Vec<u8> {
        format!("{MEMLODE}\n{}\n{name}\n", self.trace.now()).into_bytes()
    }
}

impl KeptTables for Tables {
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        let mut bytes = self.folder.read(&Tables::file(name), MOST).ok()?;
        let (sum, rest) = bytes.strip_prefix(&MAGIC)?.split_first_chunk()?;
        let table = rest.strip_prefix(&*self.subject(name))?.len();
        if crc32fast::hash(rest) != u32::from_le_bytes(*sum) {
            return None;
        }
        bytes.drain(..bytes.len() - table);
        Some(bytes)
    }

    fn keep(&self, name: &str, table: &[u8]) -> bool {
        let mut bytes = [&MAGIC[..], &[0; 4], &self.subject(name), table].concat();
        let sum = crc32fast::hash(&bytes[HEAD..]);
        bytes[HEAD - 4..HEAD].copy_from_slice(&sum.to_le_bytes());
        let made = match self.folder.make(Path::new(FOLDER)) {
            Err(error) => error.kind() == ErrorKind::AlreadyExists,
            Ok(()) => true,
        };
        made && bytes.len() as u64 <= MOST && self.folder.write(&Tables::file(name), &bytes).is_ok()
    }
}
