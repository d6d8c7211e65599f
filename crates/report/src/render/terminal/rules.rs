//! The simulated rules, the assumptions, and the work of prefetchers, in words.

use std::fmt::Write;

use super::{Style, plain_table, write_table};
use crate::model::{LevelBesides, RulesUsed};
use crate::render::sentences::{assumption, level_rules};
use crate::render::text::{count, percent};

/// The rules and the assumptions, a line each.
pub fn rules(rules: &RulesUsed, style: Style) -> String {
    let levels = rules.levels.iter().map(|level| format!("{}: {}", level.level, level_rules(level)));
    let coherence = if rules.coherence == "mesi" { "; MESI" } else { "" };
    let said = format!("{}{coherence}", levels.collect::<Vec<_>>().join("; "));
    let mut out = style.paragraph("rules", &said);
    for assumed in &rules.assumptions {
        out += &style.paragraph("assumed", &assumption(assumed));
    }
    out
}

/// Returns the work of prefetchers, level by level; empty if there are none.
pub fn prefetchers(levels: &[LevelBesides], style: Style) -> String {
    let rows = levels.iter().filter_map(|level| Some((&level.level, level.prefetch.as_ref()?)));
    let mut table =
        plain_table(&["level", "fetched ahead", "useful", "late", "useless", "evicted useful lines"], 1);
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
    let _ = writeln!(out, "\n{}", style.heading("Prefetchers"));
    write_table(&mut out, &table);
    out
}
