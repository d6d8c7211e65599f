//! Which rules of a machine's caches were simulated, what was assumed, and what prefetchers and coherence did.

use std::fmt::Write;
use std::sync::Arc;

use memlode_attribute::DetailedProfile;
use memlode_attribute::simulator::{Homes, Memory, Placement};
use memlode_machine::{Allocate, Coherence, Inclusion, Machine, Prefetch, Replacement, Rules};
use serde::Serialize;

use crate::terminal::{Style, plain_table};
use crate::text::{bytes, count, percent};

/// What was simulated of a machine's rules.
#[derive(Clone, Debug, Serialize)]
pub struct RulesUsed {
    /// Each level's rules as a sentence, innermost first.
    pub levels: Vec<String>,
    /// `mesi`, or `none`.
    pub coherence: &'static str,
    /// What the figures take for granted.
    pub assumptions: Vec<String>,
}

/// What keeping caches the same took.
#[derive(Clone, Debug, Serialize)]
pub struct CoherenceNumbers {
    /// Writes that found their line but had to ask for it for themselves.
    pub upgrades: u64,
    /// Lines that came from another core's cache.
    pub transfers: u64,
    /// Accesses that missed because of another core's write of the same bytes.
    pub true_sharing: u64,
    /// Accesses that missed because of another core's write of other bytes of the line.
    pub false_sharing: u64,
}

/// What happened at a level besides demand.
#[derive(Clone, Debug, Serialize)]
pub struct LevelBesides {
    /// The level.
    pub level: String,
    /// Writes that went on outwards, through the level or past it.
    pub passed_writes: u64,
    /// Lines that left because an inclusive level outside dropped them.
    pub back_invalidations: u64,
    /// Lines that left because another core wrote to them.
    pub invalidations: u64,
    /// What its prefetchers did; `None` if it has none.
    pub prefetch: Option<PrefetchNumbers>,
}

/// What prefetchers were good for.
#[derive(Clone, Debug, Serialize)]
pub struct PrefetchNumbers {
    /// Lines fetched ahead.
    pub issued: u64,
    /// Of those, lines that were asked for before they left.
    pub useful: u64,
    /// Of the useful ones, lines that were asked for before they can have come.
    pub late: u64,
    /// Lines that left unused.
    pub useless: u64,
    /// Misses of lines that had made room for a prefetch.
    pub pollution: u64,
}

/// The rules that were simulated: the machine's if there was a model of them.
pub fn rules_used(machine: &Machine, levels: &[Arc<str>], detailed: &DetailedProfile) -> RulesUsed {
    let with_rules = detailed.details.model.is_some();
    let plain = Rules::default();
    let rules = machine.levels.iter().map(|level| if with_rules { &level.rules } else { &plain });
    let coherent = with_rules && machine.coherence == Coherence::Mesi;
    let mut assumptions = vec![
        "misses do not overlap, and each costs the latency of the level that answers: an upper bound"
            .to_string(),
    ];
    if with_rules && machine.levels.iter().any(|level| !level.rules.prefetch.is_empty()) {
        assumptions.push(format!(
            "a prefetched line is there at once, and counts as late if it is used within {} accesses of each core that \
             has run anything yet: the latency of memory at one access a cycle",
            machine.memory_latency_cycles
        ));
    }
    if !machine.tlbs.is_empty() {
        let second = machine.tlbs.iter().map(|tlb| tlb.latency_cycles).max().filter(|cycles| *cycles > 0);
        let second = second.map_or(String::new(), |cycles| format!(", one of a second-level TLB {cycles}"));
        assumptions.push(format!(
            "the wait has translations: one from the page tables takes {} cycles, wherever they are{second}",
            machine.page_walk_cycles
        ));
    }
    let named = detailed.setup.named.iter().filter(|_| !machine.tlbs.is_empty());
    assumptions.extend(named.map(|named| {
        let pages = bytes(named.page_bytes);
        match &named.memory {
            Memory::Heap => format!("memory whose allocation was recorded lies in pages of {pages}"),
            Memory::Stack => format!("stacks lie in pages of {pages}"),
            Memory::Global { name, .. } => format!("the global variable {name} lies in pages of {pages}"),
        }
    }));
    if machine.nodes > 1 {
        assumptions.push(format!(
            "the wait has remote memory: {} cycles, where the node's own takes {}; {homes}",
            machine.remote_latency_cycles,
            machine.memory_latency_cycles,
            homes = homes(&detailed.setup.homes),
        ));
    }
    RulesUsed {
        levels: levels.iter().zip(rules).map(|(name, rules)| format!("{name}: {}", said(rules))).collect(),
        coherence: if coherent { "mesi" } else { "none" },
        assumptions,
    }
}

/// Where pages are.
fn homes(homes: &Homes) -> String {
    let given = if homes.ranges.is_empty() { "" } else { "pages lie where they were said to, and others " };
    let placed = match homes.placement {
        Placement::FirstTouch => "in the node that touches them first".to_string(),
        Placement::Interleave => "in all nodes in turn".to_string(),
        Placement::Node(node) => format!("in node {node}"),
    };
    if given.is_empty() { format!("pages lie {placed}") } else { format!("{given}{placed}") }
}

/// `tree-PLRU, exclusive, prefetches next-line and stride`.
fn said(rules: &Rules) -> String {
    let mut words = vec![
        match rules.replacement {
            Replacement::Lru => "LRU",
            Replacement::TreePlru => "tree-PLRU",
            Replacement::Srrip => "SRRIP",
            Replacement::Brrip => "BRRIP",
            Replacement::Fifo => "FIFO",
            Replacement::Random => "random",
        }
        .to_string(),
    ];
    match rules.inclusion {
        Inclusion::NonInclusive => {}
        Inclusion::Inclusive => words.push("inclusive".into()),
        Inclusion::Exclusive => words.push("exclusive".into()),
    }
    if rules.write == memlode_machine::Write::Through {
        words.push("write-through".into());
    }
    if rules.allocate == Allocate::Reads {
        words.push("no-write-allocate".into());
    }
    if let Some(sector) = rules.sector_bytes {
        words.push(format!("sectors of {}", bytes(sector.into())));
    }
    let prefetchers = rules.prefetch.iter().map(|prefetch| match prefetch {
        Prefetch::NextLine => "next-line",
        Prefetch::AdjacentLine => "adjacent-line",
        Prefetch::Stride => "stride",
        Prefetch::Stream => "stream",
    });
    let prefetchers: Vec<&str> = prefetchers.collect();
    if !prefetchers.is_empty() {
        words.push(format!("prefetches {}", prefetchers.join(" and ")));
    }
    words.join(", ")
}

/// What coherence took, if it was simulated.
pub fn coherence(machine: &Machine, detailed: &DetailedProfile) -> Option<CoherenceNumbers> {
    let counted = detailed.details.model.as_ref()?.coherence;
    (machine.coherence == Coherence::Mesi).then_some(CoherenceNumbers {
        upgrades: counted.upgrades,
        transfers: counted.transfers,
        true_sharing: counted.true_sharing,
        false_sharing: counted.false_sharing,
    })
}

/// What happened at each level besides demand; nothing if no rules were simulated.
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

/// The rules and the assumptions, a line each.
pub fn rules_text(rules: &RulesUsed, style: Style) -> String {
    let bold = |text: &str| if style.colours { format!("\x1b[1m{text}\x1b[0m") } else { text.to_string() };
    let room = style.width.saturating_sub(9).max(24);
    let coherence = if rules.coherence == "mesi" { "; MESI" } else { "" };
    let said = format!("{}{coherence}", rules.levels.join("; "));
    let assumed = rules.assumptions.iter().map(|assumption| ("assumed", assumption));
    let mut out = String::new();
    for (heading, text) in std::iter::once(("rules", &said)).chain(assumed) {
        let mut lines = wrap(text, room).into_iter();
        let gap = 9 - heading.len();
        let _ = writeln!(out, "{}{:gap$}{}", bold(heading), "", lines.next().unwrap_or_default());
        lines.for_each(|line| _ = writeln!(out, "         {line}"));
    }
    out
}

/// Lines of whole words, of at most `width` columns where words allow it.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

/// What prefetchers did, level by level; nothing if there are none.
pub fn prefetch_text(levels: &[LevelBesides], style: Style) -> String {
    let rows = levels.iter().filter_map(|level| Some((&level.level, level.prefetch.as_ref()?)));
    let mut table =
        plain_table(&["level", "fetched ahead", "useful", "late", "useless", "drove out a line missed"], 1);
    for (level, prefetch) in rows.clone() {
        table.add_row([
            level.clone(),
            count(prefetch.issued),
            percent(prefetch.useful, prefetch.issued),
            percent(prefetch.late, prefetch.issued),
            percent(prefetch.useless, prefetch.issued),
            count(prefetch.pollution),
        ]);
    }
    if rows.count() == 0 {
        return String::new();
    }
    let mut out = String::new();
    let title = if style.colours { "\x1b[1mPrefetchers\x1b[0m" } else { "Prefetchers" };
    let _ = writeln!(out, "\n{title}");
    table.lines().for_each(|line| _ = writeln!(out, "  {}", line.trim_end()));
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_kept_whole() {
        assert_eq!(super::wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(super::wrap("indivisible a", 3), ["indivisible", "a"]);
    }
}
