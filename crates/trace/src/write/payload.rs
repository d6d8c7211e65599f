//! The words of chunks: coded for a file, or plain for a consumer that replays them at once and
//! would only decode them again.

use crate::words::{TAIL_BYTES, WordRoom};

/// The form in which an encoder leaves the words of its chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// In the form of a file.
    #[default]
    Coded,
    /// In the form in memory.
    Plain,
}

/// The words of the chunk being built.
pub(super) enum Gathered {
    /// Heads and tails that are written so far, and room behind them.
    Coded {
        heads: Vec<u8>,
        words: usize,
        tails: Vec<u8>,
        end: usize,
    },
    Plain(Vec<u64>),
}

/// The words of a chunk.
#[derive(Clone, Debug)]
pub(super) enum Words {
    /// Heads, tails behind them, and how many bytes the heads have.
    Coded {
        bytes: Vec<u8>,
        heads: usize,
    },
    Plain(Vec<u64>),
}

impl Gathered {
    pub fn new(form: Form) -> Gathered {
        match form {
            Form::Coded => Gathered::Coded { heads: Vec::new(), words: 0, tails: Vec::new(), end: 0 },
            Form::Plain => Gathered::Plain(Vec::new()),
        }
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        match self {
            Gathered::Coded { words, .. } => *words,
            Gathered::Plain(words) => words.len(),
        }
    }

    /// Makes room for this many more.
    pub fn make_room(&mut self, more: usize) {
        match self {
            Gathered::Coded { heads, words, tails, end } => {
                let (of_heads, of_tails) = (*words + more, *end + (more + 1) * TAIL_BYTES);
                if heads.len() < of_heads {
                    heads.resize(of_heads, 0);
                }
                if tails.len() < of_tails {
                    tails.resize(of_tails, 0);
                }
            }
            Gathered::Plain(words) => words.reserve(more),
        }
    }

    /// Adds the differences of words from those before, for which there is room.
    pub fn put(&mut self, differences: &[u64]) {
        match self {
            Gathered::Coded { heads, words, tails, end } => {
                let mut room = WordRoom { heads, tails, words: *words, end: *end };
                room.put(differences);
                (*words, *end) = (room.words, room.end);
            }
            Gathered::Plain(words) => words.extend_from_slice(differences),
        }
    }

    /// Takes all of them out.
    pub fn take(&mut self) -> Words {
        match self {
            Gathered::Coded { heads, words, tails, end } => {
                let (heads, tails) = (&heads[..*words], &tails[..*end]);
                let taken = Words::Coded { bytes: [heads, tails].concat(), heads: *words };
                (*words, *end) = (0, 0);
                taken
            }
            Gathered::Plain(words) => {
                let like_these = Vec::with_capacity(words.len());
                Words::Plain(std::mem::replace(words, like_these))
            }
        }
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        match self {
            Gathered::Coded { words, end, .. } => (*words, *end) = (0, 0),
            Gathered::Plain(words) => words.clear(),
        }
    }
}

impl Words {
    /// Bytes that they have in this form.
    pub fn bytes(&self) -> usize {
        match self {
            Words::Coded { bytes, .. } => bytes.len(),
            Words::Plain(words) => size_of_val(&words[..]),
        }
    }
}

/// The payload behind a chunk's header.
#[derive(Clone, Debug)]
pub enum Payload {
    /// The bytes of a file.
    Packed(Vec<u8>),
    /// Words as they are, for readers that need no coded ones.
    Plain {
        /// The bytes before the words.
        before: Vec<u8>,
        /// The words.
        words: Vec<u64>,
    },
}

impl Payload {
    /// Bytes that it has in this form.
    pub fn bytes(&self) -> usize {
        match self {
            Payload::Packed(bytes) => bytes.len(),
            Payload::Plain { before, words } => before.len() + size_of_val(&words[..]),
        }
    }
}
