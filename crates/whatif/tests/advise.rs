//! Advice without a terminal: from a recorded trace to edits, and a host that stops it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use memlode_layout::{Edit, edits_from_text};
use memlode_machine::Machine;
use memlode_trace::Trace;
use memlode_whatif::advise::{Advised, Baseline, Budget, Effort, LeftOff, advise, search, written};
use memlode_whatif::host::{Host, Quiet, ReplayProgress};
use memlode_whatif::noise::Verdict;
use memlode_whatif::predict::Unpredictable;
use tempfile::TempDir;

/// A trace of nodes of a page each that are walked in no order, which wait for translations.
struct Recorded(TempDir);

impl Recorded {
    fn new() -> Recorded {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../analyses/fixtures/strides/trace");
        let folder = TempDir::new().expect("a folder");
        copy(&from, folder.path());
        Recorded(folder)
    }

    fn count(&self, host: impl Host + 'static) -> Result<Baseline, Unpredictable> {
        let trace = Arc::new(Trace::open(self.0.path()).expect("a trace"));
        let machine = Machine::find("generic").expect("a built-in machine");
        Baseline::count(trace, machine, (None, None), 2, Box::new(host))
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&to).expect("a new folder");
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).expect("a copy");
        }
    }
}

const EFFORT: Effort = Effort { types: 3, budget: Budget::Endless };

/// Keeps the edits that it receives.
struct Telling(Arc<Mutex<Vec<(String, f64)>>>);

impl Host for Telling {
    fn found(&self, edits: &[Edit], gain: f64) {
        self.0.lock().expect("the list").push((written(edits), gain));
    }
}

/// Stops once a number of replays have begun.
struct Stopping {
    begun: AtomicUsize,
    most: usize,
}

impl Host for Stopping {
    fn progress(&self, _: &'static str) -> ReplayProgress {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Box::new(|_| {})
    }

    fn is_stopped(&self) -> bool {
        self.begun.load(Ordering::Relaxed) > self.most
    }
}

#[test]
fn what_waits_for_translations_gets_larger_pages() {
    let recorded = Recorded::new();
    let baseline = recorded.count(Quiet).expect("counts");
    let Advised { worth_it, .. } = advise(&baseline, EFFORT).expect("advice");
    let best = &worth_it.first().expect("an edit that is worth it").outcome;
    assert_eq!(written(&best.edits), "pages \"program.c:39\" to 2MiB");
    assert!(best.gain() > 0.02 && best.verdict == Verdict::WorthIt, "{}", best.gain());
    assert_eq!(baseline.placed_by(), Some(Quiet.allocator_name()));
    // The same trace gives the same numbers, and what placement changes is kept beside it.
    let again = recorded.count(Quiet).expect("counts").outcome(&best.edits).expect("an outcome");
    assert_eq!((again.before, again.after), (best.before, best.after));
    let kept = fs::read_dir(recorded.0.path()).expect("a folder").filter_map(Result::ok);
    let is_kept = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b"placements-");
    let kept: Vec<PathBuf> = kept.filter(is_kept).map(|entry| entry.path()).collect();
    assert_eq!(kept.len(), 1);

    // A link in its place is neither read nor written through: the name is the same in every trace.
    let victim = recorded.0.path().join("victim");
    fs::rename(&kept[0], &victim).expect("a file");
    let before = fs::read(&victim).expect("a file");
    fs::write(&victim, [&before[..], b" "].concat()).expect("a file");
    std::os::unix::fs::symlink(&victim, &kept[0]).expect("a link");
    let baseline = recorded.count(Quiet).expect("counts");
    baseline.noise().expect("runs of other placements");
    assert_eq!(fs::read(&victim).expect("a file"), [&before[..], b" "].concat());
    assert!(fs::symlink_metadata(&kept[0]).expect("a file").is_file(), "a fresh file took the link's place");
}

/// The kinds of files that placements are kept in beside a trace.
fn kept_placements(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).expect("a folder").filter_map(Result::ok);
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut kinds: Vec<String> = names
        .filter(|name| name.contains("placements"))
        .filter_map(|name| name.rsplit_once('-').map(|(kind, _)| kind.to_string()))
        .collect();
    kinds.sort();
    kinds
}

#[test]
fn placements_are_looked_at_closely_only_where_they_can_decide() {
    let recorded = Recorded::new();
    let edit = |text: &str| edits_from_text(text).expect("an edit");
    // A change of less than counts as one is none, whatever placement does.
    let small = recorded.count(Quiet).expect("counts").outcome(&edit("shift \"program.c:39\" by 64"));
    let small = small.expect("an outcome");
    assert!(small.gain().abs() < 0.02, "{}", small.gain());
    assert_eq!((small.verdict, small.range), (Verdict::Neutral, None));
    assert_eq!(kept_placements(recorded.0.path()), [""; 0]);
    // One far beyond what a few show is judged by these.
    let pages = edit("pages \"program.c:39\" to 2MiB");
    let large = recorded.count(Quiet).expect("counts").outcome(&pages).expect("an outcome");
    assert_eq!(large.verdict, Verdict::WorthIt);
    assert_eq!(kept_placements(recorded.0.path()), ["few-placements"]);
    // And so it is by a close look.
    let baseline = recorded.count(Quiet).expect("counts");
    let range = baseline.noise().expect("runs of other placements").range();
    let again = baseline.outcome(&pages).expect("an outcome");
    assert_eq!((again.verdict, again.range), (large.verdict, Some(range)));
    assert!(large.range.is_some_and(|most| most >= range), "{range}, and at most {:?}", large.range);
    assert_eq!(kept_placements(recorded.0.path()), ["few-placements", "placements"]);
}

#[test]
fn a_host_stops_it() {
    let recorded = Recorded::new();
    let host = |most| Stopping { begun: AtomicUsize::new(0), most };
    assert!(matches!(recorded.count(host(0)), Err(Unpredictable::Stopped)));
    let baseline = recorded.count(host(1)).expect("one replay is allowed");
    let stopped = advise(&baseline, EFFORT).expect("what was found until then");
    assert!(stopped.left_off == Some(LeftOff::Stopped) && stopped.worth_it.is_empty());
}

#[test]
fn what_is_found_is_told_at_once() {
    let recorded = Recorded::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let baseline = recorded.count(Telling(told.clone())).expect("counts");
    let advised = advise(&baseline, EFFORT).expect("advice");
    let best = &advised.worth_it[0].outcome;
    let told = told.lock().expect("the list");
    assert_eq!(told[..], [(written(&best.edits), best.gain())]);
}

#[test]
fn a_type_that_is_not_there_is_named() {
    let baseline = Recorded::new().count(Quiet).expect("counts");
    let Err(error) = search(&baseline, "nod") else { panic!("there is no such type") };
    assert!(error.to_string().contains("no type `nod`"), "{error}");
}
