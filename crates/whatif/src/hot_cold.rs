//! Structures that would be better in two parts: the hot members and the cold ones.
//!
//! The rules are those of Chilimbi, Davidson and Larus ("Cache-conscious structure definition",
//! PLDI 1999). LS are the accesses to members of all records, C the records with any, A the
//! accesses to the members of one and F its members.
//! - A record is *live* if A > LS / (100 C), it has more than 8 bytes and more than two members.
//! - A member is *cold* if it has at most A / (2 F) accesses, and the cold part must have at least
//!   8 bytes.
//! - The record is split if its temperature differential, (max hot − 2 Σ cold) / max hot, is above
//!   0.5. If not, members with fewer than A / (5 F) accesses are taken for cold, and the test is
//!   repeated.

use memlode_attribute::Profile;
use memlode_attribute::libraries::FetchedCrates;
use memlode_trace::layouts::LayoutId;
use memlode_trace::sites::SiteTable;

use crate::heat::{Heat, RecordNames, heat};

/// The smallest cold part that pays for the way to it.
const COLD_BYTES: u64 = 8;
/// A temperature differential above this is worth a split.
const DIFFERENTIAL: f64 = 0.5;

/// A live record, its members marked.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its members as they lie.
    pub members: Vec<ChartMember>,
    /// The temperature differential of the marking.
    pub differential: f64,
    /// True if the rules split it.
    pub is_split: bool,
}

/// A member of a live record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChartMember {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Accesses to it.
    pub accesses: u64,
    /// Misses of the first level.
    pub misses: u64,
    /// True if it is cold.
    pub is_cold: bool,
}

/// The live records of a profile, those with the most accesses first.
pub fn charts(names: &SiteTable, profile: &Profile) -> Vec<Chart> {
    let records = (0..names.layouts().all().len() as u32).map(LayoutId);
    let mut heats: Vec<Heat> = Vec::new();
    let of_records = RecordNames::of(names, profile);
    let fetched = FetchedCrates::of(names);
    for found in records.filter_map(|record| heat(names, profile, (record, &of_records))) {
        // Two definitions of a name are one to the accesses.
        let is_known = heats.iter().any(|known| known.structure.name == found.structure.name);
        if !is_known
            && !fetched.has_type(&found.structure.name)
            && found.accesses.iter().any(|&accesses| accesses > 0)
        {
            heats.push(found);
        }
    }
    let total = |heat: &Heat| heat.accesses.iter().sum::<u64>();
    let (all, records) = (heats.iter().map(total).sum::<u64>(), heats.len() as u64);
    heats.sort_by_key(|heat| std::cmp::Reverse(total(heat)));
    let is_live = |heat: &&Heat| {
        let members = heat.structure.members.len();
        u128::from(total(heat)) * 100 * u128::from(records) > u128::from(all)
            && heat.structure.bytes > 8
            && members > 2
    };
    heats.iter().filter(is_live).map(chart).collect()
}

fn chart(heat: &Heat) -> Chart {
    let members: Vec<(u64, u64)> =
        heat.structure.members.iter().zip(&heat.accesses).map(|(member, &n)| (member.bytes, n)).collect();
    let (cold, differential, is_split) = mark(&members);
    let counts = heat.accesses.iter().zip(&heat.misses);
    let members = heat.structure.members.iter().zip(counts).zip(cold);
    Chart {
        name: heat.structure.name.clone(),
        bytes: heat.structure.bytes,
        members: members
            .map(|((member, (&accesses, &misses)), is_cold)| ChartMember {
                name: member.name.clone(),
                bytes: member.bytes,
                accesses,
                misses,
                is_cold,
            })
            .collect(),
        differential,
        is_split,
    }
}

/// Marks the cold ones among members with these sizes and accesses; returns the temperature
/// differential, and whether to split.
pub fn mark(members: &[(u64, u64)]) -> (Vec<bool>, f64, bool) {
    let count = members.len() as u64;
    let all: u64 = members.iter().map(|(_, accesses)| accesses).sum();
    let decide = |cold: Vec<bool>| {
        let part = |wanted: bool| members.iter().zip(&cold).filter(move |(_, cold)| **cold == wanted);
        let hottest = part(false).map(|((_, accesses), _)| *accesses).max().unwrap_or(0);
        let cold_accesses: u64 = part(true).map(|((_, accesses), _)| accesses).sum();
        let cold_bytes: u64 = part(true).map(|((bytes, _), _)| bytes).sum();
        let differential = (hottest as f64 - 2.0 * cold_accesses as f64) / hottest.max(1) as f64;
        let is_split = hottest > 0 && cold_bytes >= COLD_BYTES && differential > DIFFERENTIAL;
        (cold, differential, is_split)
    };
    let aggressive = decide(members.iter().map(|(_, accesses)| accesses * 2 * count <= all).collect());
    if aggressive.2 {
        return aggressive;
    }
    decide(members.iter().map(|(_, accesses)| accesses * 5 * count < all).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_marked_by_the_published_rules() {
        // A = 1000, F = 5: cold up to 100. The differential is (800 − 2·60) / 800.
        let (cold, differential, is_split) = mark(&[(8, 800), (8, 140), (8, 50), (4, 10), (4, 0)]);
        assert_eq!(cold, [false, false, true, true, true]);
        assert!((differential - 0.85).abs() < 1e-9 && is_split);
        // Exactly A / (2 F) is cold; one more is not.
        assert!(mark(&[(8, 500), (8, 400), (8, 100), (8, 0), (8, 0)]).0[2]);
        assert!(!mark(&[(8, 499), (8, 400), (8, 101), (8, 0), (8, 0)]).0[2]);
        // Cold members that add up are asked again: fewer than A / (5 F) = 40 are cold then.
        let (cold, _, is_split) =
            mark(&[(8, 320), (8, 300), (8, 95), (8, 95), (8, 90), (8, 10), (8, 10), (8, 5)]);
        assert_eq!(cold, [false, false, false, false, false, true, true, true]);
        assert!(is_split);
        // Less than 8 bytes do not pay for a pointer.
        assert!(!mark(&[(8, 900), (8, 500), (4, 10)]).2);
        // All alike: nothing is cold.
        assert_eq!(mark(&[(8, 10), (8, 10), (8, 10)]), (vec![false; 3], 1.0, false));
    }
}
