//! A thread's stream to chunks, one behind the other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::chunk::{FullChunk, LooseChunk};
use super::encode::{Appended, Encoder, FULL_WORDS, Tail};
use super::history::History;
use super::payload::Form;
use super::space::AddressSpace;

/// Encodes the stream of one thread.
///
/// Parts of it may be encoded elsewhere, ahead of earlier parts: the history to which they are then
/// joined is shared.
#[derive(Default)]
pub struct ChunkEncoder {
    encoder: Encoder,
    history: Arc<Mutex<History>>,
}

impl ChunkEncoder {
    /// An encoder for a thread that has done nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with chunks whose words have this form.
    pub fn of_form(form: Form) -> Self {
        ChunkEncoder { encoder: Encoder::new(FULL_WORDS, form), history: Arc::default() }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the history from which chunks that are encoded elsewhere get the words that they
    /// need.
    pub fn shared_history(&self) -> Arc<Mutex<History>> {
        self.history.clone()
    }

    /// Returns whether there is nothing to finish.
    pub fn is_empty(&self) -> bool {
        self.encoder.is_empty()
    }

    /// When the memory of the chunk's first words was taken, if it has been begun.
    pub fn begun(&self) -> Option<u64> {
        self.encoder.begun().map(|stamp| self.history().not_before(stamp))
    }

    /// Adds words to the chunk. They begin with a header; `stamps` are the times when their memory
    /// was taken and handed over.
    pub fn append(
        &mut self,
        words: &[u64],
        tail: Tail,
        stamps: (u64, u64),
        space: &AddressSpace,
    ) -> Appended {
        let history = &self.history;
        self.encoder.append(words, tail, stamps, space, &mut |wanted| {
            let history = history.lock().unwrap_or_else(PoisonError::into_inner);
            history.words_of(wanted).map(<[u64]>::to_vec)
        })
    }

    /// Closes the chunk; `None` if nothing was appended.
    pub fn finish(&mut self) -> Option<FullChunk> {
        let chunk = self.encoder.finish()?;
        Some(self.history().join(chunk))
    }

    /// Adds a chunk of the following words that was encoded elsewhere. To be called after
    /// [`Self::finish`]. `None` if they have to be encoded again, because the words before them
    /// were not the expected ones.
    pub fn join(&mut self, chunk: LooseChunk) -> Option<FullChunk> {
        let mut history = self.history();
        history.agrees(&chunk).then(|| history.join(chunk))
    }

    /// Words of the stream are lost here: addresses that follow must not be derived from words
    /// before. To be called behind [`Self::finish`].
    pub fn gap(&mut self) {
        self.encoder.gap();
        self.history().gap();
    }

    /// Begins a later time: recording was off in between. To be called behind [`Self::finish`].
    pub fn resume_after_off(&mut self) {
        self.encoder.gap();
        self.history().resume_after_off();
    }

    /// Returns whether recording was off for the words that are appended.
    pub fn is_dormant(&self) -> bool {
        self.history().is_dormant()
    }

    /// Begins a time while recording was off, of which nothing else is known, or ends it.
    /// To be called behind [`Self::finish`].
    pub fn set_dormant(&mut self, dormant: bool) {
        self.encoder.gap();
        self.history().set_dormant(dormant);
    }
}
