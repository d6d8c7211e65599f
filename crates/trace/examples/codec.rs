//! The speed at which chunks are encoded and decoded on one core, and their size.
//!
//! `cargo run --release -p memlode-trace --example codec [TRACE…]`: made-up streams, and the traces
//! named.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use memlode_replay::Replay;
use memlode_trace::Trace;
use memlode_trace::event::Batch;
use memlode_trace::log::Event;
use memlode_trace::write::{AddressSpace, ChunkEncoder, EncodedChunk, Packer, Stop, Tail, TraceWriter};
use support::{ANCHORS_AT, LOAD_BIAS, Operand, Plan, Seg, Step, image};

/// Words of each stream.
const WORDS: usize = 8 << 20;
/// Words of a ring's chunk: what the collector appends at a time.
const RING_CHUNK_WORDS: usize = 8 << 10;

fn main() {
    println!(
        "{:<28}{:>14}{:>14}{:>14}{:>14}{:>14}",
        "stream", "delta", "delta+zstd", "decode", "bytes/access", "accesses/word"
    );
    println!("{:<28}{:>14}{:>14}{:>14}", "", "Mwords/s", "Mwords/s", "Maccesses/s");
    measure("loop, 1 word, 1 access", &loops(1), body_of_one);
    measure("loop, 2 words, 6 accesses", &loops(3), body_of_two);
    measure("tree walk, random nodes", &tree(), random_nodes);
    measure("interpreter, random jumps", &interpreter(), random_jumps);
    measure("random words, one segment", &loops(1), random_words);
    for path in std::env::args().skip(1) {
        let trace = Trace::open(path.as_ref()).expect("a trace");
        let (decoding, accesses) = decode(&trace);
        let bytes: u64 = trace.threads().iter().map(|thread| thread.bytes).sum();
        let words: u64 = trace.chunks().iter().map(|chunk| u64::from(chunk.raw_words())).sum();
        println!(
            "{path:<28}{:>14}{:>14}{:>14.0}{:>14.3}{:>14.2}",
            "-",
            "-",
            millions(accesses, decoding),
            bytes as f64 / accesses as f64,
            accesses as f64 / words as f64
        );
    }
}

fn plan(segments: Vec<Vec<Step>>) -> Plan {
    let segments = segments.into_iter().map(|steps| Seg { function: 0, steps }).collect();
    Plan { functions: 1, site_bytes: vec![8; 4], segments }
}

/// One segment of some words, each with derived accesses.
fn loops(accesses: usize) -> Plan {
    let mut steps = vec![Step::Access(0, Operand::Word)];
    if accesses > 1 {
        steps.push(Step::Access(1, Operand::Word));
        (0..accesses - 1).for_each(|_| {
            steps.extend([Step::Access(2, Operand::Back(2, 8)), Step::Access(3, Operand::Back(2, 8))])
        });
    }
    plan(vec![steps])
}

fn tree() -> Plan {
    let node = |fields| {
        let mut steps = vec![Step::Access(0, Operand::Word)];
        (0..fields).for_each(|_| steps.push(Step::Access(1, Operand::Back(1, 8))));
        steps
    };
    plan(vec![node(1), node(2), node(1)])
}

fn interpreter() -> Plan {
    let op = |words| vec![Step::Access(0, Operand::Word); words];
    plan((0..300).map(|i| op(1 + i % 4)).collect())
}

/// A generator good enough for benchmarks (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 29)
    }
}

fn header(segment: u64) -> u64 {
    LOAD_BIAS + ANCHORS_AT + 8 * segment
}

fn body_of_one(out: &mut Vec<u64>, i: u64, _: &mut Random) {
    out.extend([header(0), 0x7f00_0000_0000 + 8 * i]);
}

fn body_of_two(out: &mut Vec<u64>, i: u64, _: &mut Random) {
    out.extend([header(0), 0x7f00_0000_0000 + 64 * i, 0x7e00_0000_0000 + 8 * i]);
}

fn random_nodes(out: &mut Vec<u64>, _: u64, random: &mut Random) {
    let node = 0x5600_0000_0000 + random.next() % (1 << 20) * 48;
    out.extend([header(0), node, header(1 + random.next() % 2), node + 16]);
}

fn random_jumps(out: &mut Vec<u64>, i: u64, random: &mut Random) {
    let segment = random.next() % 300;
    out.push(header(segment));
    for word in 0..=segment % 4 {
        out.push(0x7ffc_0000_0000 + word * 4096 + i % 64 * 16 + random.next() % 16 * 8);
    }
}

fn random_words(out: &mut Vec<u64>, _: u64, random: &mut Random) {
    out.extend([header(0), 0x5600_0000_0000 + random.next() % (1 << 27) * 8]);
}

fn measure(name: &str, plan: &Plan, body: fn(&mut Vec<u64>, u64, &mut Random)) {
    let mut words = Vec::with_capacity(WORDS + 8);
    let mut random = Random(1);
    let mut pieces = Vec::new();
    for i in 0.. {
        if words.len() - pieces.last().map_or(0, |end| *end) > RING_CHUNK_WORDS {
            pieces.push(words.len());
        }
        if words.len() >= WORDS {
            break;
        }
        body(&mut words, i, &mut random);
    }
    let directory = tempfile::tempdir().unwrap();
    let mut writer = TraceWriter::create(&directory.path().join("t"), Default::default(), false).unwrap();
    let (id, module) = writer.add_module(image(plan)).unwrap();
    let mut space = AddressSpace::default();
    space.load(id, module, LOAD_BIAS);

    let (delta, _) = best(|| encode(&words, &pieces, &space, false));
    let (encoding, chunks) = best(|| encode(&words, &pieces, &space, true));
    writer.event(&Event::ThreadStart { process: 0, thread: 0, tid: 1, stamp: 0 }).unwrap();
    chunks.into_iter().for_each(|chunk| writer.append(0, 0, chunk).unwrap());
    writer.finish(Default::default()).unwrap();

    let trace = Trace::open(&directory.path().join("t")).unwrap();
    let (decoding, accesses) = decode(&trace);
    println!(
        "{name:<28}{:>14.0}{:>14.0}{:>14.0}{:>14.3}{:>14.2}",
        millions(pieces.last().copied().unwrap_or(0), delta),
        millions(pieces.last().copied().unwrap_or(0), encoding),
        millions(accesses, decoding),
        trace.threads()[0].bytes as f64 / accesses as f64,
        accesses as f64 / words.len() as f64,
    );
}

fn millions(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64() / 1e6
}

fn decode(trace: &Trace) -> (Duration, usize) {
    best(|| {
        let (mut accesses, mut seen) = (0, 0u64);
        let replayed = trace.replay(0, |batch: &Batch| {
            accesses += batch.accesses.len();
            seen = seen.wrapping_add(batch.accesses.last().map_or(0, |access| access.address));
            std::ops::ControlFlow::Continue(())
        });
        assert!(replayed.damaged.is_empty() && seen > 0);
        accesses
    })
}

fn encode(words: &[u64], pieces: &[usize], space: &AddressSpace, zstd: bool) -> Vec<EncodedChunk> {
    let (mut encoder, mut packer) =
        (ChunkEncoder::new(), if zstd { Packer::new() } else { Packer::storing() });
    let mut chunks = Vec::new();
    let mut start = 0;
    for &end in pieces {
        while start < end {
            let appended = encoder.append(&words[start..end], Tail::HandedOver, (0, 0), space);
            start += appended.consumed;
            if appended.stop == Stop::Full {
                chunks.extend(encoder.finish().map(|chunk| chunk.pack(&mut packer)));
            }
        }
    }
    chunks.extend(encoder.finish().map(|chunk| chunk.pack(&mut packer)));
    chunks
}

/// Shortest of several runs: the cost of the code without disturbance.
fn best<T>(mut run: impl FnMut() -> T) -> (Duration, T) {
    let mut timed = || {
        let start = cpu_time();
        let result = run();
        (cpu_time() - start, result)
    };
    let mut best = timed();
    for _ in 0..6 {
        let again = timed();
        if again.0 < best.0 {
            best = again;
        }
    }
    best
}

/// Time this thread has spent on a processor: the work of other threads does not count.
fn cpu_time() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a kernel with schedstats");
    let nanoseconds = schedstat.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.expect("nanoseconds on a processor"))
}
