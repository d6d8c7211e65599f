//! Budgets of misses: what was written down, and what a trace makes of it.

use std::path::Path;

use memlode_whatif::budget::{Budget, Excess, MovedMember, Range};
use serde::Serialize;

use super::text::{percent_of, printable};

/// `budget record --json`.
#[derive(Debug, Serialize)]
pub struct BudgetRecord<'a> {
    /// The kind of document.
    pub format: &'static str,
    /// Its version.
    pub version: u32,
    /// The budget that was written.
    pub budget: &'a Budget,
}

/// The outcome for one type.
#[derive(Debug, Serialize)]
pub struct CheckedType {
    /// The type.
    #[serde(rename = "type")]
    pub ty: String,
    /// No figure is over the budget.
    pub within: bool,
    /// Lines that its accesses touched; none if the type was not accessed.
    pub lines_touched: Option<u64>,
    /// Indexed by level, in 1,000 calls; none if the type was not accessed.
    pub misses: Vec<f64>,
    /// Figures that are over.
    pub over: Vec<Excess>,
    /// Members that lie elsewhere, the one that misses most first.
    pub moved: Vec<MovedMember>,
    /// The member whose misses rose most, where none moved.
    pub risen: Option<MovedMember>,
    /// The order of members that it was recorded with, where that differs.
    pub restoring: Option<Restoring>,
}

/// The order of members that a budget was recorded with, and what it comes to.
#[derive(Debug, Serialize)]
pub struct Restoring {
    /// The edit in its short form.
    pub edit: String,
    /// True if the figures are within the budget then; none if that cannot be replayed.
    pub within: Option<bool>,
    /// Misses by level in 1,000 calls then.
    pub misses: Vec<f64>,
    /// Why it cannot be replayed.
    pub refused: Option<String>,
}

/// `budget check --json`.
#[derive(Debug, Serialize)]
pub struct BudgetCheck<'a> {
    /// The kind of document.
    pub format: &'static str,
    /// Its version.
    pub version: u32,
    /// No type is over its budget.
    pub within: bool,
    /// The machine.
    pub machine: &'a str,
    /// The function that calls are counted of; none if all are.
    pub per: Option<&'a str>,
    /// The types.
    pub types: &'a [CheckedType],
}

/// Returns the line about a run of several threads that is held against single figures.
pub fn no_range(threads: usize, budget: &Path) -> String {
    format!(
        "{threads} threads: what they miss may depend on their schedule, and {} has no range for it",
        budget.display()
    )
}

/// Returns what was written down, a line each type.
pub fn recorded(budget: &Budget) -> String {
    let mut text = String::new();
    for ty in &budget.types {
        let misses = budget.level.iter().zip(&ty.misses);
        let misses: Vec<String> =
            misses.map(|(level, &range)| format!("{} {}", level.name, figure(range))).collect();
        text += &format!(
            "{}: {} misses in 1,000 calls{}; {} lines touched\n",
            printable(&ty.name),
            misses.join(", "),
            of_function(budget),
            figure(ty.lines_touched)
        );
    }
    text
}

fn of_function(budget: &Budget) -> String {
    budget.per.as_ref().map_or_else(String::new, |per| format!(" of {}", printable(per)))
}

fn figure(range: Range) -> String {
    match range {
        Range::One(figure) => number(figure),
        Range::Between(least, most) => format!("{} to {}", number(least), number(most)),
    }
}

/// Three digits behind the point at most, and none that say nothing.
fn number(figure: f64) -> String {
    let text = format!("{figure:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Returns whether a type is within its budget, and if not, what may have taken it out.
pub fn checked(budget: &Budget, ty: &CheckedType) -> String {
    let name = printable(&ty.ty);
    if ty.misses.is_empty() {
        return format!("{name}: was not accessed\n");
    }
    if ty.within {
        return format!("{name}: within its budget\n");
    }
    let of = of_function(budget);
    let mut text = String::new();
    for Excess { level, budget, now } in &ty.over {
        let more =
            if *budget > 0.0 { format!(" ({} more)", percent_of(now / budget - 1.0)) } else { String::new() };
        text += &match level {
            Some(level) => format!(
                "{name}: over its budget: {} misses of {} in 1,000 calls{of}, where {} are allowed{more}\n",
                number(*now),
                level,
                number(*budget)
            ),
            None => format!(
                "{name}: over its budget: {} lines touched, where {} are allowed{more}\n",
                number(*now),
                number(*budget)
            ),
        };
    }
    for (member, verb) in ty.moved.iter().take(3).zip(["moved", "moved, too", "moved, too"]) {
        let place = |offset: Option<u64>, none: &str| {
            offset.map_or_else(|| none.to_string(), |offset| format!("offset {offset}"))
        };
        text += &format!(
            "  {}.{} {verb}: {} → {}; {} → {} misses\n",
            name,
            printable(&member.name),
            place(member.offset_before, "new"),
            place(member.offset, "gone"),
            number(member.misses_before),
            number(member.misses)
        );
    }
    if let Some(member) = &ty.risen {
        text += &format!(
            "  no member moved: the accesses changed, most those to {}.{} ({} → {} misses)\n",
            name,
            printable(&member.name),
            number(member.misses_before),
            number(member.misses)
        );
    }
    if let Some(Restoring { edit, within, refused, .. }) = &ty.restoring {
        text += &match (within, refused) {
            (Some(true), _) => format!("  the order that restores it: {}\n", printable(edit)),
            (Some(false), _) => format!(
                "  its order was: {}; that alone does not bring it within its budget\n",
                printable(edit)
            ),
            (None, why) => format!(
                "  its order was: {}; that could not be replayed: {}\n",
                printable(edit),
                printable(why.as_deref().unwrap_or_default())
            ),
        };
    }
    text
}
