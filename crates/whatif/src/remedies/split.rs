//! # A record in two parts
//!
//! **What it proposes.** `split`: the members that a function uses together, or those that are used
//! most, stay; the others move into a record of their own, which is found by a pointer, an index, or
//! at the same place of a second array. Among them is the split of Chilimbi, Davidson and Larus.
//!
//! **Why it gains.** A line that is fetched for hot members brings more hot members along, in the
//! place of cold ones.
//!
//! **When it is wrong.** Code that needs both parts touches two lines, and a pointer or an index takes
//! room itself. That is replayed, so such a split is turned down.

use memlode_layout::{Edit, Link};

use crate::heat::Heat;
use crate::hot_cold::Chart;
use crate::remedy::{Case, CaseSubject, Proposal, Remedy, RemedyMeta};

/// Numbers of members that are tried as the hot part.
const HOTTEST: [usize; 4] = [1, 2, 4, 8];

/// The most members that are tried of those that accesses may be to.
const UNCLEAR: usize = 4;

/// A record in two parts.
pub(crate) struct Split;

impl Remedy for Split {
    const META: RemedyMeta = RemedyMeta { id: "split", rank: 20, program: "gallery/tree-payload" };

    fn propose(case: &Case<'_>) -> Vec<Proposal> {
        let CaseSubject::Record { heat, chart, .. } = case.subject else { return Vec::new() };
        let mut edits = together(heat);
        edits.extend(chart.and_then(by_rules).filter(|edit| !edits.contains(edit)));
        edits.into_iter().map(Proposal::one).collect()
    }
}

/// Parts that are used together, or most, each found in every way.
fn together(heat: &Heat) -> Vec<Edit> {
    let order = heat.hottest_first();
    let mut sets = heat.sets();
    let used = order.iter().filter(|&&at| heat.accesses[at] > 0).count();
    for most in HOTTEST.into_iter().chain([used]) {
        let mut set: Vec<usize> = order.iter().copied().take(most).collect();
        set.sort_unstable();
        sets.push(set);
    }
    sets.extend(heat.unclear.iter().flat_map(|unclear| one_of(unclear, heat)));
    let mut edits = Vec::new();
    for (at, set) in sets.iter().enumerate() {
        if set.is_empty() || set.len() >= order.len() || sets[..at].contains(set) {
            continue;
        }
        for by in [Link::Parallel, Link::Index, Link::Pointer] {
            edits.push(Edit::Split { structure: heat.structure.name.clone(), hot: heat.names(set), by });
        }
    }
    edits
}

/// Sets with each of some members that accesses may be to, such as strings that one function reads:
/// with the members that are known to be used, or alone. A replay knows the addresses.
fn one_of(unclear: &[usize], heat: &Heat) -> Vec<Vec<usize>> {
    let known = (0..heat.accesses.len()).filter(|at| heat.accesses[*at] > 0 && !unclear.contains(at));
    let known: Vec<usize> = known.collect();
    let with_known = |&at: &usize| {
        let mut set = [&known[..], &[at]].concat();
        set.sort_unstable();
        [set, vec![at]]
    };
    unclear.iter().take(UNCLEAR).flat_map(with_known).collect()
}

/// The split that the published rules ask for.
fn by_rules(chart: &Chart) -> Option<Edit> {
    let hot = chart.members.iter().filter(|member| !member.is_cold && !member.name.is_empty());
    let hot: Vec<String> = hot.map(|member| member.name.clone()).collect();
    (chart.is_split && !hot.is_empty()).then(|| Edit::Split {
        structure: chart.name.clone(),
        hot,
        by: Link::Pointer,
    })
}
