//! Records that `perf record -z` compressed: one zstd stream, cut at records of the file and not at those inside.

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Bytes that are unpacked at a time.
const STEP: usize = 1 << 16;
/// Bytes that a file may unpack to for each byte of it, and besides: more is no recording.
const MOST_TIMES: u64 = 1000;
const MOST_BESIDES: u64 = 64 << 20;

/// The stream so far.
pub struct Unpacker {
    decoder: Decoder<'static>,
    /// The beginning of a record whose rest is still packed.
    pub rest: Vec<u8>,
    taken: u64,
    made: u64,
}

impl Unpacker {
    /// Begins.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn new() -> Result<Unpacker, String> {
        let decoder = Decoder::new().map_err(|why| why.to_string())?;
        Ok(Unpacker { decoder, rest: Vec::new(), taken: 0, made: 0 })
    }

    /// Unpacks more behind [`Unpacker::rest`].
    ///
    /// # Errors
    /// If the bytes are no zstd, or become too many.
    pub fn unpack(&mut self, packed: &[u8]) -> Result<(), String> {
        self.taken += packed.len() as u64;
        let mut input = InBuffer::around(packed);
        let mut step = [0; STEP];
        loop {
            let mut output = OutBuffer::around(&mut step[..]);
            self.decoder
                .run(&mut input, &mut output)
                .map_err(|why| format!("its compressed records are damaged: {why}"))?;
            let made = output.as_slice();
            let is_full = made.len() == STEP;
            self.made += made.len() as u64;
            if self.made > self.taken * MOST_TIMES + MOST_BESIDES {
                return Err("its compressed records unpack to more than a recording has".into());
            }
            self.rest.extend_from_slice(made);
            if !is_full && input.pos() == packed.len() {
                return Ok(());
            }
        }
    }
}
