//! `memlode place-blocks`: makes allocation calls, and prints the addresses of the blocks. Memlode
//! starts it itself, as a process whose heap has no other users.
//!
//! Standard input has four little-endian words for each call: the call, with the thread in bits 8
//! and up; the block that is made; the block that ends; and the size. At its end, standard output
//! gets the address of each block.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::process::ExitCode;
use std::sync::{Condvar, Mutex, PoisonError};

use anyhow::Result;
use clap::Parser;

use crate::status::OK;

/// `malloc`.
pub const MAKE: u64 = 0;
/// `realloc`.
pub const RESIZE: u64 = 1;
/// `free`.
pub const END: u64 = 2;
/// Words of a call.
pub const WORDS: usize = 4;

/// Calls that a thread makes at once, at most.
const AT_ONCE: usize = 4096;
/// Threads that have heaps of their own; others share them.
const THREADS: u64 = 64;

/// Make allocation calls
#[derive(Debug, Parser)]
#[command(hide = true)]
pub struct Args {}

/// The blocks and where they lie. What is never written takes no memory, and is large enough to be mapped: the heap is the program's.
struct Blocks {
    live: Vec<Option<Vec<u8>>>,
    places: Vec<u64>,
}

type Words = [u64; WORDS];

impl Blocks {
    fn call(&mut self, [what, block, other, bytes]: Words) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        match what & 0xff {
            MAKE => {
                let mut memory = Vec::new();
                let made = memory.try_reserve_exact(bytes.max(1));
                self.put(block, made.is_ok().then_some(memory));
            }
            RESIZE => {
                let mut memory = self.take(other).unwrap_or_default();
                let bytes = bytes.max(1);
                if bytes < memory.capacity() {
                    memory.shrink_to(bytes);
                }
                let made = memory.try_reserve_exact(bytes);
                self.put(block, made.is_ok().then_some(memory));
            }
            _ => drop(self.take(other)),
        }
    }

    fn take(&mut self, block: u64) -> Option<Vec<u8>> {
        self.live.get_mut(usize::try_from(block).ok()?)?.take()
    }

    fn put(&mut self, block: u64, memory: Option<Vec<u8>>) {
        let Ok(at) = usize::try_from(block) else { return };
        if self.live.len() <= at {
            self.live.resize_with(at + 1, || None);
            self.places.resize(at + 1, 0);
        }
        self.places[at] = memory.as_ref().map_or(0, |memory| memory.as_ptr() as u64);
        self.live[at] = memory;
    }
}

/// The turn of one of the commands, with its arguments.
struct Turn {
    thread: Option<u64>,
    calls: Vec<Words>,
    blocks: Blocks,
    is_over: bool,
}

pub fn run(_: Args) -> Result<ExitCode> {
    let turn = Mutex::new(Turn {
        thread: None,
        calls: Vec::with_capacity(AT_ONCE),
        blocks: Blocks { live: Vec::with_capacity(1 << 20), places: Vec::with_capacity(1 << 20) },
        is_over: false,
    });
    let changed = Condvar::new();
    let mut input = BufReader::with_capacity(1 << 20, io::stdin().lock());
    std::thread::scope(|scope| -> Result<()> {
        let read = make_all(&mut input, &turn, &changed, |thread| {
            let (turn, changed) = (&turn, &changed);
            scope.spawn(move || serve(thread, turn, changed));
        });
        turn.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        changed.notify_all();
        read
    })?;
    let turn = turn.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut output = BufWriter::new(io::stdout().lock());
    for place in &turn.blocks.places {
        output.write_all(&place.to_le_bytes())?;
    }
    output.flush()?;
    Ok(ExitCode::from(OK))
}

/// Reads calls and has them made, the first thread's here and others' where `start` starts a thread for them.
fn make_all(
    input: &mut impl Read,
    turn: &Mutex<Turn>,
    changed: &Condvar,
    mut start: impl FnMut(u64),
) -> Result<()> {
    let mut first = None;
    let mut started = [false; THREADS as usize];
    let mut pending: Option<(u64, Vec<Words>)> = None;
    let mut finish = |thread: u64, calls: &mut Vec<Words>| {
        let mut at_hand = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if *first.get_or_insert(thread) == thread {
            calls.drain(..).for_each(|call| at_hand.blocks.call(call));
            return;
        }
        if !std::mem::replace(&mut started[thread as usize], true) {
            start(thread);
        }
        std::mem::swap(&mut at_hand.calls, calls);
        at_hand.thread = Some(thread);
        changed.notify_all();
        while at_hand.thread.is_some() {
            at_hand = changed.wait(at_hand).unwrap_or_else(PoisonError::into_inner);
        }
    };
    while let Some(call) = next(input)? {
        let thread = (call[0] >> 8) % THREADS;
        let (of, calls) = pending.get_or_insert_with(|| (thread, Vec::with_capacity(AT_ONCE)));
        if *of != thread || calls.len() == AT_ONCE {
            finish(*of, calls);
            *of = thread;
        }
        calls.push(call);
    }
    if let Some((thread, mut calls)) = pending {
        finish(thread, &mut calls);
    }
    Ok(())
}

/// Makes the calls of one thread whenever it is its turn.
fn serve(thread: u64, turn: &Mutex<Turn>, changed: &Condvar) {
    let mut at_hand = turn.lock().unwrap_or_else(PoisonError::into_inner);
    while !at_hand.is_over {
        if at_hand.thread == Some(thread) {
            let Turn { calls, blocks, .. } = &mut *at_hand;
            calls.drain(..).for_each(|call| blocks.call(call));
            at_hand.thread = None;
            changed.notify_all();
        }
        at_hand = changed.wait(at_hand).unwrap_or_else(PoisonError::into_inner);
    }
}

/// The next call.
fn next(input: &mut impl Read) -> Result<Option<Words>> {
    let mut bytes = [0; WORDS * 8];
    match input.read_exact(&mut bytes) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    Ok(Some(words))
}
