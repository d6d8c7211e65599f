//! Hand-made batches, and the rows that a recorder makes of them.

use crossbeam_channel::{Receiver, unbounded};
use memlode_simulate::{Hierarchy, LevelSpec};
use memlode_trace::event::{Access, Batch, Frame, Mark, ProcessId, ThreadId};
use memlode_trace::sites::{FunctionId, SiteId, SiteKind};

use crate::count::profiler::Profiler;
use crate::drive::annotate::recorder::Recorder;
use crate::drive::annotate::{BlockEvent, Life, Options, ROWS, Sent};

#[path = "../../../tests/common/mod.rs"]
mod common;

use common::site;

const LOAD: SiteId = SiteId(0);
const ALLOC: SiteId = SiteId(1);
const FREE: SiteId = SiteId(2);

fn begins(at: u32, base: u64) -> (u32, Mark) {
    (at, Mark::Alloc { site: ALLOC, base, count: 1, element_bytes: 64 })
}

fn ends(at: u32, base: u64) -> (u32, Mark) {
    (at, Mark::Free { site: FREE, base })
}

/// All batches that a recorder sends of one thread's events.
fn sent(options: Options, accesses: usize, marks: Vec<(u32, Mark)>) -> Vec<Sent> {
    let (sender, batches) = unbounded();
    let (_, spares): (_, Receiver<_>) = unbounded();
    let level = LevelSpec { bytes: 64, ways: 1, line_bytes: 64, shared_by: 1 };
    let recorder = Recorder::new(Hierarchy::new(&[level], 1).expect("caches"), &options, sender, spares);
    let sites = [SiteKind::Load, SiteKind::Alloc, SiteKind::Free].map(|kind| site(kind, 0));
    let mut profiler = Profiler::new(&sites, recorder);
    profiler.caches.begin(ThreadId(0), ProcessId(0), 0);
    profiler.observe(&Batch {
        process: Some(ProcessId(0)),
        thread: Some(ThreadId(0)),
        stack: vec![Frame { function: FunctionId(0), address: 0x7fff_0000 }],
        accesses: vec![Access { address: 0x1000, bytes: 8, site: LOAD }; accesses],
        marks,
        ..Batch::default()
    });
    profiler.caches.send();
    drop(profiler);
    batches.iter().collect()
}

/// Shapes of batches: how many rows, and how many blocks.
fn shapes(sent: &[Sent]) -> Vec<(usize, usize)> {
    sent.iter().map(|sent| (sent.events.rows(), sent.events.blocks.len())).collect()
}

fn with_blocks() -> Options {
    Options { blocks: true, ..Options::default() }
}

#[test]
fn blocks_behind_the_last_row_of_a_full_batch_are_sent() {
    let sent = sent(with_blocks(), ROWS, vec![begins(0, 0x1000), ends(ROWS as u32, 0x1000)]);
    assert_eq!(shapes(&sent), [(ROWS, 1), (0, 1)]);
    let end = BlockEvent { row: 0, process: ProcessId(0), address: 0x1000, life: Life::Ends };
    assert_eq!(sent[1].events.blocks, [end]);
}

#[test]
fn blocks_that_nothing_touches_are_sent_batch_by_batch() {
    let lives = |block: u64| [begins(0, 64 * block), ends(0, 64 * block)];
    let sent = sent(with_blocks(), 0, (1..=ROWS as u64 + 1).flat_map(lives).collect());
    assert_eq!(shapes(&sent), [(0, ROWS), (0, ROWS), (0, 2)]);
    // Whose they are comes with the first of them.
    assert_eq!(sent.iter().map(|sent| sent.news.objects.len()).collect::<Vec<_>>(), [1, 0, 0]);
}

#[test]
fn blocks_are_sent_only_if_they_are_wanted() {
    let sent = sent(Options::default(), 3, vec![begins(0, 0x1000), ends(3, 0x1000)]);
    assert_eq!(shapes(&sent), [(3, 0)]);
}
