//! Which loads wait for the one before, and how often.
//!
//! A load is a *link* if its address is made, through the loads that feed it, of what it loaded itself the turn before: it lies on a
//! cycle of feeders. So is the third and every further load of one member in a row, as in a loop over a list of known length that
//! the compiler wrote out. An access is chained as often as its address came from a link and not from what a chain begins with:
//!
//! ```text
//!   for (n = table[h]; n; n = n->next)  n->key        address: table[h], executed  1 000 times, no link
//!                                                              or n->next, executed 9 000 times, a link: 90% chained
//! ```

use memlode_trace::sites::{Dependence, SiteId, SiteTable};

/// So many loads of one member, each of which leads to the next, are a chain.
const IN_A_ROW: u32 = 3;

/// Returns what part of each site's accesses waits for the load before it in a chain, 0 to 1.
///
/// `executed` says how often each site was executed.
pub(super) fn chained(names: &SiteTable, executed: &[u64]) -> Vec<f64> {
    let is_link = links(names);
    let times = |site: &SiteId| executed.get(site.0 as usize).copied().unwrap_or(0);
    let of_group = |group: &[SiteId]| {
        let all: u64 = group.iter().map(times).sum();
        let links: u64 = group.iter().filter(|site| is_link[site.0 as usize]).map(times).sum();
        if all > 0 { links as f64 / all as f64 } else { 0.0 }
    };
    let sites = (0..names.sites().len() as u32).map(SiteId);
    let chained = sites.map(|id| {
        let address = names.work(id).map_or(&[][..], |work| &work.address);
        if address.is_empty() {
            // All that is known is what the code looks like.
            let is_chased = names.site(id).dependence() == Some(Dependence::Chased);
            return f64::from(u8::from(is_chased));
        }
        address.iter().map(|group| of_group(group)).fold(0.0, f64::max)
    });
    chained.collect()
}

/// Returns, by site, whether it is a link.
fn links(names: &SiteTable) -> Vec<bool> {
    let feeders: Vec<Vec<u32>> = (0..names.sites().len() as u32)
        .map(|id| {
            let address = names.work(SiteId(id)).map_or(&[][..], |work| &work.address);
            address.iter().flat_map(|group| group.iter().map(|site| site.0)).collect()
        })
        .collect();
    let mut is_link = cyclic(&feeders);
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

/// Returns whether two sites load the same member of the same type.
fn is_same_member(names: &SiteTable, one: u32, other: u32) -> bool {
    let [one, other] = [one, other].map(|id| {
        let site = names.site(SiteId(id));
        (site.ty, site.member)
    });
    one.0.is_some() && one.1.is_some() && one == other
}

/// The nodes of a graph that lie on a cycle (Tarjan's algorithm, without recursion).
fn cyclic(edges: &[Vec<u32>]) -> Vec<bool> {
    const UNSEEN: u32 = u32::MAX;
    let mut number = vec![UNSEEN; edges.len()];
    let mut lowest = vec![0u32; edges.len()];
    let mut is_open = vec![false; edges.len()];
    let mut is_cyclic = vec![false; edges.len()];
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
                is_cyclic[node] |= to == node;
                continue;
            }
            path.pop();
            if let Some(&(before, _)) = path.last() {
                lowest[before] = lowest[before].min(lowest[node]);
            }
            if lowest[node] == number[node] {
                let from = open.iter().rposition(|&other| other == node).unwrap_or(0);
                let together = open.split_off(from);
                for &other in &together {
                    is_open[other] = false;
                    is_cyclic[other] |= together.len() > 1;
                }
            }
        }
    }
    is_cyclic
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_node_is_cyclic_if_it_can_be_reached_from_itself(
            pairs in prop::collection::vec((0..12usize, 0..12u32), 0..40),
        ) {
            let mut edges = vec![Vec::new(); 12];
            pairs.iter().for_each(|&(from, to)| edges[from].push(to));
            // Floyd and Warshall.
            let mut reaches = [[false; 12]; 12];
            pairs.iter().for_each(|&(from, to)| reaches[from][to as usize] = true);
            for over in 0..12 {
                for from in 0..12 {
                    for to in 0..12 {
                        reaches[from][to] |= reaches[from][over] && reaches[over][to];
                    }
                }
            }
            let expected: Vec<bool> = (0..12).map(|node| reaches[node][node]).collect();
            prop_assert_eq!(cyclic(&edges), expected);
        }
    }
}
