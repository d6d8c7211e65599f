//! The members of each live structure, hot and cold.

use std::ops::ControlFlow;

use memlode_attribute::{Simulation, Source};
use memlode_report::notes;
use memlode_whatif::hot_cold::charts;
use serde_json::{Value, json};

use memlode_analyses::parts::Prepared;

/// Counts on a machine, and returns a row for each member, as JSON: the structures with the most
/// accesses first, their members as they lie.
pub fn hot_cold(Prepared { trace, machine, .. }: Prepared) -> Result<String, String> {
    if notes::is_empty(&trace) {
        return Err(notes::nothing_recorded(&trace));
    }
    let source = Source::Stored(trace.clone());
    let counted = Simulation::of(&source, &machine).count(|_| ControlFlow::Continue(()));
    let (profile, _) = counted.map_err(|why| why.to_string())?;
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let mut rows: Vec<Value> = Vec::new();
    for chart in charts(trace.sites(), &profile) {
        let accesses = chart.members.iter().map(|member| member.accesses).sum();
        let misses = chart.members.iter().map(|member| member.misses).sum();
        rows.extend(chart.members.iter().map(|member| {
            json!({
                "type": chart.name,
                "member": member.name,
                "bytes": member.bytes,
                "accesses": member.accesses,
                "access_share": share(member.accesses, accesses),
                "misses": member.misses,
                "miss_share": share(member.misses, misses),
                "is_cold": member.is_cold,
                "is_split": chart.is_split,
            })
        }));
    }
    serde_json::to_string(&rows).map_err(|why| why.to_string())
}
