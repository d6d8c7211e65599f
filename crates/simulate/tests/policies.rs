//! Replacement policies on sequences whose results are published or worked out by hand. One set.

use memlode_simulate::{LevelSpec, MemRef, Model, ModelLevel, ModelSpec, Replacement};

/// `.` for each hit and `x` for each miss of a sequence of lines, named by characters.
fn misses(replacement: Replacement, ways: u32, lines: &str) -> String {
    let shape = LevelSpec { bytes: 64 * u64::from(ways), ways, line_bytes: 64, shared_by: 1 };
    let level = ModelLevel { replacement, ..ModelLevel::from(shape) };
    let mut model = Model::new(&ModelSpec::new(vec![level], 1)).unwrap();
    let mut miss = |line: char| model.access(MemRef::read(0, 64 * u64::from(line), 8)).depth == 1;
    lines.chars().filter(|line| *line != ' ').map(|line| if miss(line) { 'x' } else { '.' }).collect()
}

/// Belady's anomaly (Belady, Nelson, Shedler, "An anomaly in space-time characteristics of certain
/// programs running in a paging machine", CACM 1969): on this sequence FIFO misses 9 times with
/// three places and 10 times with four. LRU, a stack algorithm, cannot do worse with more: 10 and
/// 8.
#[test]
fn more_room_can_be_worse_for_fifo() {
    let count = |replacement, ways| misses(replacement, ways, "123412512345").matches('x').count();
    assert_eq!((count(Replacement::Fifo, 3), count(Replacement::Fifo, 4)), (9, 10));
    assert_eq!((count(Replacement::Lru, 3), count(Replacement::Lru, 4)), (10, 8));
}

/// The mixed pattern with which Jaleel et al. (ISCA 2010) explain RRIP: two lines that are used
/// again, then a scan of four in a set of four. LRU loses both; static RRIP keeps them.
///
/// ```text
///  line      a b b a   1     2     3        4        a b
///  a b 1 2             0 0 2 0 0 2 2        (predictions)
///                            no 3: all age by one, 1 1 3 3; 3 takes the place of 1, 4 that of 2
/// ```
#[test]
fn a_scan_does_not_cost_srrip_its_working_set() {
    assert_eq!(misses(Replacement::Lru, 4, "abba 1234 ab"), "xx..xxxxxx");
    assert_eq!(misses(Replacement::Srrip, 4, "abba 1234 ab"), "xx..xxxx..");
}

/// A loop over five lines in four ways. LRU and static RRIP miss always; bimodal RRIP puts all but
/// every 32nd line where the next miss takes its place again, so three of the five stay.
///
/// ```text
///  a b c d   all predicted 3 (the first four fills are not the 32nd)
///  e         takes the first way, a's, and is predicted 3
///  a         takes e's place
///  b c d     hit, and are predicted 0
///  e a       take each other's place from now on
/// ```
#[test]
fn a_loop_that_is_too_large_keeps_most_of_itself_under_brrip() {
    assert_eq!(misses(Replacement::Srrip, 4, "abcde abcde abcde"), "xxxxxxxxxxxxxxx");
    assert_eq!(misses(Replacement::Lru, 4, "abcde abcde abcde"), "xxxxxxxxxxxxxxx");
    assert_eq!(misses(Replacement::Brrip, 4, "abcde abcde abcde"), "xxxxxx...xx...x");
}

/// A tree of bits is not LRU: after a b c d a, LRU would evict b. The root points away from a's
/// half, to c and d, of which c is the older.
#[test]
fn a_tree_forgets_more_than_lru() {
    assert_eq!(misses(Replacement::Lru, 4, "abcda e cb"), "xxxx.x.x");
    assert_eq!(misses(Replacement::TreePlru, 4, "abcda e bc"), "xxxx.x.x");
}

/// With two ways a tree is one bit, and that is LRU.
#[test]
fn a_tree_of_two_ways_is_lru() {
    let lines = "abacbcabbacabacbbcacbabcacbabca";
    assert_eq!(misses(Replacement::TreePlru, 2, lines), misses(Replacement::Lru, 2, lines));
}

/// The same run twice is the same; and over many misses each of the four ways is drawn: a line that
/// is used but once in a while is not safe.
#[test]
fn random_is_repeatable_and_draws_every_way() {
    let lines: String = (0..400).map(|i| char::from(b'a' + (i % 5) as u8)).collect();
    let first = misses(Replacement::Random, 4, &lines);
    assert_eq!(first, misses(Replacement::Random, 4, &lines));
    // LRU would miss all 400; a random victim is the line wanted next with one chance in four.
    let missed = first.matches('x').count();
    assert!((40..200).contains(&missed), "{missed}");
}
