//! Arrays of records that several threads write side by side without taking lines from each other.

use memlode_attribute::ClassId;
use memlode_attribute::sharing::SharingProfile;
use memlode_layout::Edit;
use rustc_hash::FxHashMap;

use crate::contended::LEAST_SHARE;
use crate::named::{name_of, records_named};
use crate::plan::{PlanInputs, record_of};

/// The most arrays that are reported, those that threads write most.
const MOST: usize = 3;

/// Fewer writes of a second thread are no work.
const LEAST_WRITES: u64 = 1000;

/// An array of records that several threads write, each at lines of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// The array.
    pub object: String,
    /// The records.
    pub structure: String,
    /// Bytes of a line that threads take from each other.
    pub line_bytes: u64,
}

impl Apart {
    /// The edit by which records begin at lines, wherever the array begins.
    pub fn at_lines(&self) -> Edit {
        self.aligned(self.line_bytes)
    }

    /// The edit that has records begin at pairs of lines, which some processors fetch together.
    pub fn at_pairs(&self) -> Edit {
        self.aligned(2 * self.line_bytes)
    }

    fn aligned(&self, to: u64) -> Edit {
        Edit::Align { subject: self.structure.clone(), of: None, to }
    }
}

/// Finds arrays of records that several threads write and of which they lose next to nothing to each other.
pub fn apart_now(known: &PlanInputs<'_>, sharing: &SharingProfile, run_cycles: f64) -> Vec<Apart> {
    let mut writers: FxHashMap<ClassId, FxHashMap<u32, u64>> = FxHashMap::default();
    for cell in &known.profile.cells {
        if known.names.site(cell.site).kind.is_write() {
            *writers.entry(cell.class).or_default().entry(cell.thread.0).or_default() +=
                cell.counts.accesses();
        }
    }
    // Somebody reads what the threads found, in the end.
    let suffers = |class: ClassId| {
        let of_class = sharing.pairs.iter().filter(|pair| pair.missed.class == class);
        of_class.map(|pair| pair.cycles).sum::<f64>() >= run_cycles * LEAST_SHARE
    };
    let mut found: Vec<(u64, Apart)> = Vec::new();
    for (class, threads) in writers {
        // The thread that writes most may be the one that makes them.
        let mut writes: Vec<u64> = threads.into_values().collect();
        writes.sort_unstable();
        let [.., second, _] = writes[..] else { continue };
        if second < LEAST_WRITES || suffers(class) {
            continue;
        }
        let of = &known.profile.classes[class.0 as usize];
        let Some((record, _)) = record_of(known.names, of).filter(|(_, bytes)| of.bytes > *bytes) else {
            continue;
        };
        let structure = known.names.layouts().layout(record).name;
        let structure = structure.map(|name| known.names.string(name).to_string());
        // A record without a name of its own is none that an edit can be about.
        let structure = structure.filter(|name| !records_named(known.names, name).is_empty());
        if let (Some(object), Some(structure), 1) = (name_of(known, &of.home), structure, of.objects) {
            found.push((second, Apart { object, structure, line_bytes: sharing.line_bytes }));
        }
    }
    found.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.object.cmp(&other.object)));
    found.into_iter().take(MOST).map(|(_, apart)| apart).collect()
}
