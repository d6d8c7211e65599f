//! Chains: which loads wait for the load before, and how often.
//!
//! A load is a *link* if its address depends, through other loads, on the value that it loaded
//! itself in the iteration before: it lies on a cycle of dependences. The third and every further
//! load of one member in a row is a link, too, as in an unrolled loop over a list of known length.
//! An access is chained as often as its address came from a link and not from the beginning of a
//! chain:
//!
//! ```text
//!   for (n = table[h]; n; n = n->next)  n->key        address: table[h], executed  1 000 times, no link
//!                                                              or n->next, executed 9 000 times, a link: 90% chained
//! ```
//! If links are executed less often than the access misses, something else, such as an index,
//! determines most of its addresses, and only that many misses wait.
//!
//! A chain may go through memory: a position that is stored in memory, is loaded, and is set to the
//! value of a load from its object.

use std::collections::BTreeSet;

use memlode_trace::sites::{Dependence, Site, SiteId, SiteKind, SiteTable};
use memlode_trace::work::Feed;
use rustc_hash::FxHashMap;

/// This many loads of one member, each of which leads to the next, are a chain.
const IN_A_ROW: u32 = 3;

/// Counts of a run, by the number of the site.
pub(super) struct Seen {
    /// Executions.
    pub executed: Vec<u64>,
    /// Accesses that missed the first level.
    pub missed: Vec<u64>,
    /// It was never at another line than at first.
    pub stays: Vec<bool>,
}

/// Returns the part of each site's accesses that waits for the load before it in a chain, 0 to 1.
pub(super) fn chained(names: &SiteTable, seen: &Seen) -> Vec<f64> {
    let is_link = links(names, seen);
    let times = |site: &SiteId| seen.executed.get(site.0 as usize).copied().unwrap_or(0);
    let of_group = |group: &[Feed], missed: u64| {
        let sites: BTreeSet<SiteId> = group.iter().map(|feed| feed.site).collect();
        let all: u64 = sites.iter().map(times).sum();
        let links: u64 = sites.iter().filter(|site| is_link[site.0 as usize]).map(times).sum();
        let share = if all > 0 { links as f64 / all as f64 } else { 0.0 };
        // No more misses than links that were followed.
        share.min(links as f64 / missed.max(1) as f64)
    };
    let sites = (0..names.sites().len() as u32).map(SiteId);
    let chained = sites.map(|id| {
        let address = names.work(id).map_or(&[][..], |work| &work.address);
        if address.is_empty() {
            // All that is known is what the code looks like.
            let is_chased = names.site(id).dependence() == Some(Dependence::Chased);
            return f64::from(u8::from(is_chased));
        }
        let missed = seen.missed.get(id.0 as usize).copied().unwrap_or(0);
        address.iter().map(|group| of_group(group, missed)).fold(0.0, f64::max)
    });
    chained.collect()
}

/// Returns, by site, whether it is a link.
fn links(names: &SiteTable, seen: &Seen) -> Vec<bool> {
    let all = |groups: &[Box<[Feed]>]| groups.iter().flatten().map(|feed| feed.site.0).collect::<Vec<u32>>();
    let sites = 0..names.sites().len() as u32;
    let feeders: Vec<Vec<u32>> =
        sites.map(|id| names.work(SiteId(id)).map_or(Vec::new(), |work| all(&work.address))).collect();
    let mut is_link = on_chains(&feeders, &through_memory(names, seen));
    // How many loads of the same member lead to each, in a row.
    let mut row = vec![0u32; feeders.len()];
    for _ in 1..IN_A_ROW {
        let longer: Vec<u32> = (0..feeders.len())
            .map(|id| {
                let same = |feeder: &&u32| is_same_member(names, id as u32, **feeder);
                feeders[id].iter().filter(same).map(|&feeder| row[feeder as usize] + 1).max().unwrap_or(0)
            })
            .collect();
        row = longer;
    }
    for (link, row) in is_link.iter_mut().zip(row) {
        *link |= row + 1 >= IN_A_ROW;
    }
    is_link
}

/// Returns, by site, the loads whose values it may load, if it loads a member that is always at one
/// place: those that are stored to the member.
fn through_memory(names: &SiteTable, seen: &Seen) -> Vec<Vec<u32>> {
    let place = |site: &Site| Some((site.ty?, site.member, site.variable.filter(|_| site.member.is_none())));
    let mut stored: FxHashMap<_, Vec<u32>> = FxHashMap::default();
    for (id, site) in (0..).zip(names.sites()).filter(|(_, site)| site.kind == SiteKind::Store) {
        if let (Some(place), Some(work)) = (place(site), names.work(SiteId(id))) {
            stored.entry(place).or_default().extend(work.data.iter().flatten().map(|feed| feed.site.0));
        }
    }
    let of = |(site, &stays): (&Site, &bool)| match site.kind {
        SiteKind::Load if stays => place(site).and_then(|place| stored.get(&place)).cloned(),
        _ => None,
    };
    names.sites().iter().zip(&seen.stays).map(|site| of(site).unwrap_or_default()).collect()
}

/// Returns the nodes that lie on a cycle with an edge of `address` among the edges of both kinds.
fn on_chains(address: &[Vec<u32>], memory: &[Vec<u32>]) -> Vec<bool> {
    let both: Vec<Vec<u32>> = address.iter().zip(memory).map(|(a, b)| [&a[..], &b[..]].concat()).collect();
    let component = components(&both);
    let mut is_chain = vec![false; both.len()];
    for (from, edges) in address.iter().enumerate() {
        for &to in edges {
            is_chain[component[from] as usize] |= component[from] == component[to as usize];
        }
    }
    component.iter().map(|&component| is_chain[component as usize]).collect()
}

/// Returns whether two sites load the same member of the same type.
fn is_same_member(names: &SiteTable, one: u32, other: u32) -> bool {
    let [one, other] = [one, other].map(|id| {
        let site = names.site(SiteId(id));
        (site.ty, site.member)
    });
    one.0.is_some() && one.1.is_some() && one == other
}

/// Returns the strongly connected component of each node of a graph: the number of one of its nodes
/// (Tarjan's algorithm, without recursion).
fn components(edges: &[Vec<u32>]) -> Vec<u32> {
    const UNSEEN: u32 = u32::MAX;
    let mut number = vec![UNSEEN; edges.len()];
    let mut lowest = vec![0u32; edges.len()];
    let mut is_open = vec![false; edges.len()];
    let mut component = vec![0; edges.len()];
    let (mut next, mut open, mut path) = (0u32, Vec::new(), Vec::new());
    for root in 0..edges.len() {
        if number[root] != UNSEEN {
            continue;
        }
        path.push((root, 0usize));
        while let Some(&mut (node, ref mut edge)) = path.last_mut() {
            if *edge == 0 {
                number[node] = next;
                lowest[node] = next;
                next += 1;
                open.push(node);
                is_open[node] = true;
            }
            if let Some(&to) = edges[node].get(*edge) {
                *edge += 1;
                let to = to as usize;
                if number[to] == UNSEEN {
                    path.push((to, 0));
                } else if is_open[to] {
                    lowest[node] = lowest[node].min(number[to]);
                }
                continue;
            }
            path.pop();
            if let Some(&(before, _)) = path.last() {
                lowest[before] = lowest[before].min(lowest[node]);
            }
            if lowest[node] == number[node] {
                let from = open.iter().rposition(|&other| other == node).unwrap_or(0);
                for other in open.split_off(from) {
                    is_open[other] = false;
                    component[other] = node as u32;
                }
            }
        }
    }
    component
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_node_is_on_a_chain_if_an_address_edge_leads_back_to_it(
            pairs in prop::collection::vec((0..12usize, 0..12u32, any::<bool>()), 0..40),
        ) {
            let mut edges = [vec![Vec::new(); 12], vec![Vec::new(); 12]];
            pairs.iter().for_each(|&(from, to, is_memory)| edges[usize::from(is_memory)][from].push(to));
            // Floyd and Warshall.
            let mut reaches = [[false; 12]; 12];
            pairs.iter().for_each(|&(from, to, _)| reaches[from][to as usize] = true);
            for over in 0..12 {
                for from in 0..12 {
                    for to in 0..12 {
                        reaches[from][to] |= reaches[from][over] && reaches[over][to];
                    }
                }
            }
            // A node on a chain reaches an address edge whose end reaches the node.
            let is_on = |node: usize| {
                let reaches_or_is = |from: usize, to: usize| from == to || reaches[from][to];
                pairs.iter().any(|&(from, to, is_memory)| {
                    !is_memory && reaches_or_is(node, from) && reaches_or_is(to as usize, node)
                })
            };
            let expected: Vec<bool> = (0..12).map(is_on).collect();
            prop_assert_eq!(on_chains(&edges[0], &edges[1]), expected);
        }
    }
}
