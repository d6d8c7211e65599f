//! The rules of a machine's caches that were simulated, the assumptions, and the effects of
//! prefetchers and coherence.

use std::sync::Arc;

use memlode_attribute::DetailedProfile;
use memlode_attribute::setup::{Homes, NamedMemory, Placement};
use memlode_machine::{Allocate, Coherence, Inclusion, Machine, Prefetch, Replacement, Rules, Write};

use crate::model::{
    Assumption, CoherenceNumbers, LevelBesides, LevelRules, Pages, PrefetchNumbers, RulesUsed,
};

/// The rules that were simulated: the machine's if there was a model of them.
pub fn rules_used(machine: &Machine, levels: &[Arc<str>], detailed: &DetailedProfile) -> RulesUsed {
    let with_rules = detailed.details.model.is_some();
    let plain = Rules::default();
    let rules = machine.levels.iter().map(|level| if with_rules { &level.rules } else { &plain });
    let coherent = with_rules && machine.coherence == Coherence::Mesi;
    RulesUsed {
        levels: levels.iter().zip(rules).map(|(name, rules)| of_level(name, rules)).collect(),
        coherence: if coherent { "mesi" } else { "none" }.into(),
        assumptions: assumptions(machine, detailed, with_rules),
    }
}

fn assumptions(machine: &Machine, detailed: &DetailedProfile, with_rules: bool) -> Vec<Assumption> {
    let mut assumptions = vec![Assumption::NoOverlap];
    if with_rules && machine.levels.iter().any(|level| !level.rules.prefetch.is_empty()) {
        assumptions.push(Assumption::PrefetchAtOnce { late_within_accesses: machine.memory_latency_cycles });
    }
    if !machine.tlbs.is_empty() {
        let second = machine.tlbs.iter().map(|tlb| tlb.latency_cycles).max();
        assumptions.push(Assumption::Translations {
            page_walk_cycles: machine.page_walk_cycles,
            second_level_cycles: second.filter(|cycles| *cycles > 0),
        });
        assumptions.extend(detailed.setup.named.iter().filter_map(|named| {
            let memory = match &named.memory {
                NamedMemory::Heap => Pages::Heap,
                NamedMemory::Stack => Pages::Stack,
                NamedMemory::Global { name, .. } => Pages::Global(name.clone()),
                // An edit's, which is told where the edit is.
                NamedMemory::Objects(_) => return None,
            };
            Some(Assumption::PageSize { memory, page_bytes: named.page_bytes })
        }));
    }
    if machine.nodes > 1 {
        assumptions.push(remote(machine, &detailed.setup.homes));
    }
    assumptions
}

fn remote(machine: &Machine, homes: &Homes) -> Assumption {
    let (placement, node) = match homes.placement {
        Placement::FirstTouch => ("first-touch", None),
        Placement::Interleave => ("interleave", None),
        Placement::Node(node) => ("node", Some(node)),
    };
    Assumption::RemoteMemory {
        remote_cycles: machine.remote_latency_cycles,
        local_cycles: machine.memory_latency_cycles,
        given: !homes.ranges.is_empty(),
        placement: placement.into(),
        node,
    }
}

/// A level's rules in the words of machine files.
fn of_level(level: &str, rules: &Rules) -> LevelRules {
    LevelRules {
        level: level.to_string(),
        replacement: match rules.replacement {
            Replacement::Lru => "lru",
            Replacement::TreePlru => "tree-plru",
            Replacement::Srrip => "srrip",
            Replacement::Brrip => "brrip",
            Replacement::Fifo => "fifo",
            Replacement::Random => "random",
        }
        .into(),
        inclusion: match rules.inclusion {
            Inclusion::NonInclusive => "non-inclusive",
            Inclusion::Inclusive => "inclusive",
            Inclusion::Exclusive => "exclusive",
        }
        .into(),
        write: match rules.write {
            Write::Back => "back",
            Write::Through => "through",
        }
        .into(),
        allocate: match rules.allocate {
            Allocate::ReadsAndWrites => "reads-and-writes",
            Allocate::Reads => "reads",
        }
        .into(),
        sector_bytes: rules.sector_bytes,
        prefetch: rules
            .prefetch
            .iter()
            .map(|prefetch| match prefetch {
                Prefetch::NextLine => "next-line",
                Prefetch::AdjacentLine => "adjacent-line",
                Prefetch::Stride => "stride",
                Prefetch::Stream => "stream",
            })
            .map(Into::into)
            .collect(),
    }
}

/// Returns the counts of coherence, if it was simulated.
pub fn coherence(machine: &Machine, detailed: &DetailedProfile) -> Option<CoherenceNumbers> {
    let counted = detailed.details.model.as_ref()?.coherence;
    (machine.coherence == Coherence::Mesi).then_some(CoherenceNumbers {
        upgrades: counted.upgrades,
        transfers: counted.transfers,
        true_sharing: counted.true_sharing,
        false_sharing: counted.false_sharing,
    })
}

/// Returns the traffic of each level besides demand; empty if no rules were simulated.
pub fn besides(machine: &Machine, levels: &[Arc<str>], detailed: &DetailedProfile) -> Vec<LevelBesides> {
    let Some(model) = &detailed.details.model else { return Vec::new() };
    let prefetchers = machine.levels.iter().zip(&model.prefetch).map(|(level, counted)| {
        (!level.rules.prefetch.is_empty()).then_some(PrefetchNumbers {
            issued: counted.issued,
            useful: counted.useful,
            late: counted.late,
            useless: counted.useless,
            pollution: counted.pollution,
        })
    });
    let rows = levels.iter().zip(&model.traffic).zip(prefetchers);
    rows.map(|((name, traffic), prefetch)| LevelBesides {
        level: name.to_string(),
        passed_writes: traffic.passed_writes,
        back_invalidations: traffic.back_invalidations,
        invalidations: traffic.invalidations,
        prefetch,
    })
    .collect()
}
