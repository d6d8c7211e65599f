//! Losses of threads to lines that they take from each other, by name.

use std::collections::{BTreeMap, BTreeSet};

use memlode_attribute::ClassId;
use memlode_attribute::place::{Place, What, place, what};
use memlode_attribute::sharing::{
    ContendedLock, Order, OwnMember, SharedPair, Sharer, Shares, SharingProfile,
};
use memlode_machine::Machine;
use memlode_trace::event::ThreadId;
use memlode_trace::sites::StringId;
use memlode_whatif::contended::{Contended, contended};
use memlode_whatif::plan::PlanInputs;

use super::Builder;
use crate::model::{SharedData, SharedLine, SharedLock, SharedObject, Side, Transfers};
use crate::names::demangle_short;

/// Cache lines that are listed.
const LINES: usize = 100;

/// The object of an access, and its place in the source.
type Key = (What, Place);

/// Which accesses take lines from each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Between {
    class: ClassId,
    missed: Key,
    other: Option<Key>,
}

/// Pairs of lines that are about the same.
#[derive(Default)]
struct Sum {
    transfers: u64,
    cycles: f64,
    /// Keyed by process and line.
    lines: BTreeMap<(u32, u64), (f64, u64)>,
    missed: BTreeSet<ThreadId>,
    other: BTreeSet<ThreadId>,
    other_class: Option<ClassId>,
    /// Variables by which the first and the other access reach their data, if known.
    variables: (Option<StringId>, Option<StringId>),
}

impl Builder<'_> {
    /// The same with names. `run_cycles` are those of the whole run.
    pub fn transfers(&self, found: &SharingProfile, machine: &Machine, run_cycles: f64) -> Transfers {
        let ms = |cycles: f64| cycles / (found.clock_ghz * 1e6);
        let near = &machine.costs.near;
        let times = [near.transfer_cycles, near.arrival_cycles, near.use_cycles];
        let lost = found.lost_cycles();
        let [falsely, truly, handed_over] = [Shares::Falsely, Shares::Truly, Shares::HandedOver]
            .map(|shares| self.shared_data(found, shares, ms));
        let objects = self.shared_objects(found, [&falsely, &truly], run_cycles, ms);
        let rows = |rows: Vec<(ClassId, SharedData)>| rows.into_iter().map(|(_, row)| row).collect();
        Transfers {
            order: match found.order {
                Order::Parallel => "parallel",
                Order::Recorded => "recorded",
            }
            .into(),
            fineness_ns: found.fineness_ns.filter(|_| found.order == Order::Recorded),
            unknown_starts: found.unknown_starts,
            one_in: found.one_in,
            unmet: found.unmet,
            measured: times.iter().all(|time| time.is_measured()),
            lines: found.lines,
            transfers: found.transfers(),
            cycles: lost as u64,
            ms: ms(lost),
            far_ms: found.far_cycles.map(ms),
            rest_ms: ms(found.threads.iter().map(|thread| thread.alone_cycles).sum()),
            objects,
            locks: found.locks.iter().map(|lock| self.shared_lock(lock, ms)).collect(),
            false_sharing: rows(falsely),
            true_sharing: rows(truly),
            handed_over: rows(handed_over),
            cache_lines: self.shared_lines(found),
        }
    }

    /// The name of an access. A member is enough: the variable through which it was reached makes
    /// no other row.
    fn key(&self, sharer: &Sharer) -> Key {
        let site = self.names.site(sharer.site);
        let what = match sharer.member {
            Some(OwnMember { ty, member }) => What { ty: Some(ty), member: Some(member), variable: None },
            None => match what(self.names, site, true) {
                What { ty: Some(ty), member: Some(member), .. } => {
                    What { ty: Some(ty), member: Some(member), variable: None }
                }
                what => what,
            },
        };
        (what, place(self.names, site))
    }

    fn shared_data(
        &self,
        found: &SharingProfile,
        shares: Shares,
        ms: impl Fn(f64) -> f64,
    ) -> Vec<(ClassId, SharedData)> {
        let mut sums: BTreeMap<Between, Sum> = BTreeMap::new();
        for pair in found.pairs.iter().filter(|pair| pair.shares == shares) {
            let other = pair.other.as_ref().map(|other| self.key(other));
            let between = Between { class: pair.missed.class, missed: self.key(&pair.missed), other };
            let variable = |sharer: &Sharer| self.names.site(sharer.site).variable;
            let variables = (variable(&pair.missed), pair.other.as_ref().and_then(variable));
            sums.entry(between).or_default().add(pair, variables);
        }
        let mut rows: Vec<(Between, Sum)> = sums.into_iter().collect();
        rows.sort_by(|(a, x), (b, y)| {
            y.cycles.total_cmp(&x.cycles).then(y.transfers.cmp(&x.transfers)).then(a.cmp(b))
        });
        let side = |key: &Key, variable: Option<StringId>, class: ClassId, threads: &BTreeSet<ThreadId>| {
            let (what, place) = key;
            let what = What { variable: what.variable.or(variable), ..*what };
            let threads = threads.iter().map(|thread| thread.0).collect();
            Side { access: self.access(&what, place), object: self.object(class), threads }
        };
        let row = |(between, sum): (Between, Sum)| {
            (
                between.class,
                SharedData {
                    handle: String::new(),
                    object: self.object(between.class),
                    stack_of: stack_of(found, between.class, sum.costliest()),
                    line: hexadecimal(sum.costliest()),
                    lines: sum.lines.len(),
                    transfers: sum.transfers,
                    cycles: sum.cycles as u64,
                    ms: ms(sum.cycles),
                    missed: side(&between.missed, sum.variables.0, between.class, &sum.missed),
                    written: between.other.map(|other| {
                        side(&other, sum.variables.1, sum.other_class.unwrap_or(ClassId::UNKNOWN), &sum.other)
                    }),
                },
            )
        };
        rows.into_iter().map(row).collect()
    }

    /// The objects that lines were taken of, and how that may be mended.
    fn shared_objects(
        &self,
        found: &SharingProfile,
        rows: [&[(ClassId, SharedData)]; 2],
        run_cycles: f64,
        ms: impl Fn(f64) -> f64,
    ) -> Vec<SharedObject> {
        let written = |linkage: &str| demangle_short(linkage);
        let (names, profile, line_bytes) = (self.names, self.profile, found.line_bytes);
        let known = PlanInputs { names, profile, written: &written, nodes: None, line_bytes };
        let contended = contended(&known, found, run_cycles);
        let mut classes: Vec<ClassId> =
            rows.iter().flat_map(|rows| rows.iter().map(|(class, _)| *class)).collect();
        classes.sort_unstable();
        classes.dedup();
        let of = |class: ClassId| {
            let pairs = || {
                let pairs = found.pairs.iter().filter(move |pair| pair.missed.class == class);
                pairs.filter(|pair| pair.shares != Shares::HandedOver)
            };
            let [false_rows, true_rows] = rows.map(|rows| {
                rows.iter().enumerate().filter(|(_, (of, _))| *of == class).map(|(at, _)| at).collect()
            });
            let cycles: f64 = pairs().map(|pair| pair.cycles).sum();
            let falsely = pairs().filter(|pair| pair.shares == Shares::Falsely).map(|pair| pair.cycles).sum();
            // Pairs are ranked.
            let costliest = pairs().next().map_or(0, |pair| pair.line);
            let edits = contended.iter().find(|contended: &&Contended| contended.class == class);
            let edits = edits.map_or(&[][..], |contended| &contended.proposals).iter();
            let short = |edits: &[memlode_layout::Edit]| {
                edits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            };
            SharedObject {
                handle: String::new(),
                object: self.object(class),
                stack_of: stack_of(found, class, costliest),
                transfers: pairs().map(|pair| pair.transfers).sum(),
                cycles: cycles as u64,
                ms: ms(cycles),
                false_ms: ms(falsely),
                false_rows,
                true_rows,
                edits: edits.map(|proposal| short(&proposal.edits)).collect(),
            }
        };
        let mut objects: Vec<SharedObject> = classes.into_iter().map(of).collect();
        objects.sort_by_key(|object| std::cmp::Reverse((object.cycles, object.transfers)));
        objects
    }

    fn shared_lock(&self, lock: &ContendedLock, ms: impl Fn(f64) -> f64) -> SharedLock {
        let access = |site| {
            let site = self.names.site(site);
            self.access(&what(self.names, site, true), &place(self.names, site))
        };
        SharedLock {
            handle: String::new(),
            object: self.object(lock.class),
            access: lock.site.map(access),
            locks: lock.locks,
            threads: lock.threads.iter().map(|thread| thread.0).collect(),
            takes: lock.takes,
            changes: lock.changes,
            most_changes: lock.most_changes,
            // The sum of no pairs is -0.
            ms: ms(lock.cycles + 0.0),
            most_ms: ms(lock.most_cycles),
        }
    }

    fn shared_lines(&self, found: &SharingProfile) -> Vec<SharedLine> {
        let mut lines: BTreeMap<(u32, u64), (f64, u64, u64, ClassId)> = BTreeMap::new();
        // The costliest pairs come first: the object is theirs.
        for pair in &found.pairs {
            let line = lines.entry((pair.process.0, pair.line)).or_insert((0.0, 0, 0, pair.missed.class));
            line.0 += pair.cycles;
            line.1 += pair.transfers;
            line.2 += if pair.shares == Shares::Falsely { pair.transfers } else { 0 };
        }
        let mut rows: Vec<_> = lines.into_iter().collect();
        rows.sort_by(|(a, x), (b, y)| y.0.total_cmp(&x.0).then(y.1.cmp(&x.1)).then(a.cmp(b)));
        let row =
            |((_, line), (cycles, transfers, false_transfers, class)): (_, (f64, u64, u64, ClassId))| {
                let (stack_of, object) = (stack_of(found, class, line), self.object(class));
                let (line, cycles) = (hexadecimal(line), cycles as u64);
                SharedLine { line, object, stack_of, transfers, false_transfers, cycles }
            };
        rows.into_iter().take(LINES).map(row).collect()
    }
}

impl Sum {
    fn add(&mut self, pair: &SharedPair, variables: (Option<StringId>, Option<StringId>)) {
        self.variables = (self.variables.0.or(variables.0), self.variables.1.or(variables.1));
        self.transfers += pair.transfers;
        self.cycles += pair.cycles;
        let line = self.lines.entry((pair.process.0, pair.line)).or_default();
        line.0 += pair.cycles;
        line.1 += pair.transfers;
        self.missed.insert(pair.missed.thread);
        if let Some(other) = pair.other {
            self.other.insert(other.thread);
            self.other_class.get_or_insert(other.class);
        }
    }

    /// Address of the line that costs most.
    fn costliest(&self) -> u64 {
        let lines = self.lines.iter();
        let most = lines.max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        most.map_or(0, |((_, line), _)| *line)
    }
}

/// The thread on whose stack a line of no object is.
fn stack_of(found: &SharingProfile, class: ClassId, line: u64) -> Option<u32> {
    found.stack_at(line).filter(|_| class == ClassId::UNKNOWN).map(|thread| thread.0)
}

fn hexadecimal(address: u64) -> String {
    format!("{address:#x}")
}
