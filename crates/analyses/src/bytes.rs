//! The results of a part of a trace as bytes, with a version and a checksum. So truncated, damaged
//! and other data are refused, and reading allocates no more than the bytes justify.
//!
//! ```text
//!   0   8      10     14
//!   │magic│version│CRC-32│ postcard: what it is of, cells, objects and paths, the state
//! ```
//! <https://postcard.jamesmunns.com/wire-format> describes the format behind the head.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::carried::BadNumber;

/// The first bytes of every part's result.
const MAGIC: [u8; 8] = *b"mlpart\r\n";

/// The version of what follows. One that knows another field, or means something else by one, has another number.
pub const VERSION: u16 = 4;

/// Bytes in front of what is checked.
const HEAD: usize = MAGIC.len() + 2 + 4;

/// Why bytes are no result of a part, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadPart {
    /// Something else.
    #[error("these {0} bytes are no result of a part of a trace")]
    NotOne(usize),
    /// Made by another memlode.
    #[error(
        "the result of a part has version {0}, and this memlode reads version {VERSION}: \
         run all parts and put them together with one version"
    )]
    OtherVersion(u16),
    /// Truncated or changed.
    #[error("the result of a part is damaged ({0}): run the part again")]
    Damaged(String),
    /// Belongs to another question, trace or machine.
    #[error("the results are not parts of one whole: {0}")]
    OtherWhole(String),
}

impl From<BadNumber> for BadPart {
    fn from(bad: BadNumber) -> BadPart {
        BadPart::Damaged(bad.to_string())
    }
}

/// Writes values one after the other.
pub(crate) struct Sealer(Vec<u8>);

impl Sealer {
    pub fn new() -> Sealer {
        Sealer([&MAGIC[..], &VERSION.to_le_bytes(), &[0; 4]].concat())
    }

    /// Adds a value.
    pub fn value(mut self, value: &impl Serialize) -> Sealer {
        self.0 = postcard::to_extend(value, self.0).expect("numbers, text and lists of known length");
        self
    }

    /// Adds bytes that are sealed themselves.
    pub fn bytes(self, bytes: &[u8]) -> Sealer {
        let mut sealer = self.value(&(bytes.len() as u64));
        sealer.0.extend_from_slice(bytes);
        sealer
    }

    /// Returns head and values.
    pub fn seal(self) -> Vec<u8> {
        let mut bytes = self.0;
        let sum = crc32fast::hash(&bytes[HEAD..]);
        bytes[HEAD - 4..HEAD].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}

/// Reads what [`Sealer`] wrote.
pub(crate) struct Opened<'b>(&'b [u8]);

impl<'b> Opened<'b> {
    /// Checks head and sum.
    pub fn new(bytes: &'b [u8]) -> Result<Opened<'b>, BadPart> {
        let Some(rest) = bytes.strip_prefix(&MAGIC) else { return Err(BadPart::NotOne(bytes.len())) };
        let (version, rest) = rest.split_first_chunk().ok_or_else(|| damaged("it ends in its head"))?;
        match u16::from_le_bytes(*version) {
            VERSION => {}
            other => return Err(BadPart::OtherVersion(other)),
        }
        let (sum, payload) = rest.split_first_chunk().ok_or_else(|| damaged("it ends in its head"))?;
        match crc32fast::hash(payload) == u32::from_le_bytes(*sum) {
            true => Ok(Opened(payload)),
            false => Err(damaged("its checksum is another one")),
        }
    }

    /// The next value. Lists are made as they are read, however long they say that they are.
    pub fn value<T: DeserializeOwned>(&mut self) -> Result<T, BadPart> {
        let (value, rest) = postcard::take_from_bytes(self.0).map_err(damaged)?;
        self.0 = rest;
        Ok(value)
    }

    /// The next bytes.
    pub fn bytes(&mut self) -> Result<&'b [u8], BadPart> {
        let length = usize::try_from(self.value::<u64>()?).map_err(damaged)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(|| damaged("it ends too early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Refuses what is left over.
    pub fn end(self) -> Result<(), BadPart> {
        match self.0.len() {
            0 => Ok(()),
            more => Err(damaged(format!("{more} bytes are left over"))),
        }
    }
}

fn damaged(why: impl ToString) -> BadPart {
    BadPart::Damaged(why.to_string())
}
