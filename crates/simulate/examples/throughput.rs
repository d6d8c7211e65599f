//! Million accesses per second of a three-level hierarchy and of the layers over it on synthetic
//! streams, by processor time.
//!
//! `cargo run --release -p memlode-simulate --example throughput [-- ACCESSES]`

use std::hint::black_box;
use std::time::Duration;

use memlode_simulate::{
    Coherence, Detailed, Hierarchy, Inclusion, LevelSpec, MemRef, Model, ModelLevel, ModelSpec, Prefetch,
    Replacement, ReuseDistance,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

fn level(bytes: u64, ways: u32) -> LevelSpec {
    LevelSpec { bytes, ways, line_bytes: 64, shared_by: 1 }
}

/// xorshift64*: fast enough not to be what is measured.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Addresses of a walk over a random cycle of `nodes` nodes of `bytes` each.
fn chase(nodes: usize, bytes: u64, count: usize, random: &mut Random) -> Vec<u64> {
    let mut next: Vec<u32> = (0..nodes as u32).collect();
    for i in (1..nodes).rev() {
        next.swap(i, (random.next() % i as u64) as usize);
    }
    let mut at = 0;
    let step = |_| {
        at = next[at] as usize;
        at as u64 * bytes
    };
    (0..count).map(step).collect()
}

/// Time this thread has spent on a processor: other programs on the machine do not count.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux kernel");
    let nanoseconds = text.split(' ').next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.expect("nanoseconds first"))
}

fn main() {
    let count = std::env::args().nth(1).map_or(2 << 20, |n| n.parse().expect("a number of accesses"));
    let machines = [
        ("32K/8 1M/16 32M/16", [level(32 * KIB, 8), level(MIB, 16), level(32 * MIB, 16)]),
        ("48K/12 2M/16 105M/15", [level(48 * KIB, 12), level(2 * MIB, 16), level(105 * MIB, 15)]),
    ];
    let mut random = Random(88172645463325252);
    let base = 0x7f12_3456_0000u64;
    let mut within = |bytes: u64| (0..count).map(|_| (random.next() % bytes) & !7).collect::<Vec<_>>();
    let streams: Vec<(&str, Vec<u64>)> = vec![
        ("sequential, 8 bytes", (0..count as u64).map(|i| 8 * i % (64 * MIB)).collect()),
        ("five streams, 8 bytes", (0..count as u64).map(|i| i % 5 * (4 * MIB + 64) + i / 5 * 8).collect()),
        ("stencil, rows of 8 KiB", (0..count as u64).map(|i| i % 3 * 8 * KIB + i / 3 * 8).collect()),
        ("stride 256 in 64M", (0..count as u64).map(|i| 256 * i % (64 * MIB)).collect()),
        ("random in 8K", within(8 * KIB)),
        ("random in 32K", within(32 * KIB)),
        ("random in 512K", within(512 * KIB)),
        ("random in 2M", within(2 * MIB)),
        ("random in 64M", within(64 * MIB)),
        ("chase 24 bytes in 24K", chase(1 << 10, 24, count, &mut random)),
        ("chase 64 bytes in 16M", chase(1 << 18, 64, count, &mut random)),
    ];
    for (name, levels) in machines {
        println!(
            "{name}: million accesses/s by layer, misses of each level per access, then bytes of details per line"
        );
        println!(
            "  {:24} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "", "plain", "detailed", "reuse", "model", "4 cores", "prefetch"
        );
        for (stream, addresses) in &streams {
            let fresh = || Hierarchy::new(&levels, 1).expect("a possible hierarchy");
            let mut caches = fresh();
            let plain = speed(addresses, |i, address| {
                // One access in four writes.
                caches.access(MemRef::read(0, base + address, 8).writing(i & 3 == 3)).into()
            });
            let mut watched = Detailed::new(fresh());
            let detailed = speed(addresses, |i, address| {
                watched
                    .access(MemRef::read(0, base + address, 8).writing(i & 3 == 3).tagged(i as u32 & 31))
                    .depth
                    .into()
            });
            let mut distances = ReuseDistance::new();
            let reuse = speed(addresses, |_, address| distances.touch((base + address) >> 6).unwrap_or(0));
            let modelled = specs(&levels).map(|(spec, cores)| {
                let mut model = Model::new(&spec).expect("a possible model");
                // It takes its time; an eighth of the stream is enough.
                speed(&addresses[..addresses.len() / 8], |i, address| {
                    model
                        .access(
                            MemRef::read(i / 16 % cores, base + address, 8)
                                .writing(i & 3 == 3)
                                .tagged(i as u32 & 31),
                        )
                        .depth
                        .into()
                })
            });
            let [model, cores, prefetch] = modelled;
            print!(
                "  {stream:24} {plain:8.1} {detailed:8.1} {reuse:8.1} {model:8.1} {cores:8.1} {prefetch:8.1}  "
            );
            let counters = caches.counters();
            let all = (counters[0].reads + counters[0].writes) as f64;
            for level in counters {
                print!(" {:.4}", (level.read_misses + level.write_misses) as f64 / all);
            }
            println!("  {:.1}", watched.bytes_of_lines() as f64 / distances.lines() as f64);
        }
    }
}

/// The general model: without any rule; with rules like those of servers, four coherent cores in
/// turns of 16 accesses; and with prefetchers.
fn specs(levels: &[LevelSpec; 3]) -> [(ModelSpec, usize); 3] {
    let plain = ModelSpec::new(levels.iter().map(|level| ModelLevel::from(*level)).collect(), 1);
    let mut four = ModelSpec { cores: 4, coherence: Coherence::Mesi, ..plain.clone() };
    four.levels[0].replacement = Replacement::Srrip;
    four.levels[1].inclusion = Inclusion::Inclusive;
    four.levels[2].inclusion = Inclusion::Exclusive;
    four.levels[2].shape.shared_by = 4;
    let mut ahead = plain.clone();
    ahead.levels[0].prefetch = vec![Prefetch::NextLine, Prefetch::Stride];
    ahead.levels[1].prefetch = vec![Prefetch::AdjacentLine, Prefetch::Stream];
    [(plain, 1), (four, 4), (ahead, 1)]
}

/// Million accesses per second, the best of five passes over the stream.
fn speed(addresses: &[u64], mut access: impl FnMut(usize, u64) -> u64) -> f64 {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = processor_time();
        let answers: u64 = addresses.iter().enumerate().map(|(i, address)| access(i, *address)).sum();
        black_box(answers);
        best = best.min(processor_time() - start);
    }
    addresses.len() as f64 / best.as_secs_f64() / 1e6
}
