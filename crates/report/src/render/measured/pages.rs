//! Pages whose physical addresses agree.

use memlode_measure::bias::pages::{Agreement, FACTOR, PageCost, PagePairs};

use super::picture::{Drawing, Labels};

/// Returns the sentence, what colliding costs by distance, and what huge pages do.
pub fn text(found: &PagePairs) -> String {
    let mut text = sentence(found) + "\n";
    for cost in found.costs.iter().filter(|_| found.colliding > 0) {
        let PageCost { distance, measured, modelled } = cost;
        let plural = if *distance == 1 { "" } else { "s" };
        text += &format!(
            "  store {distance:2} word{plural} before its load: {measured:5.1} × (the law says {modelled:.1})\n"
        );
    }
    if found.contradictions > 0 {
        text += &format!("note: {} verdicts contradict others; the machine is busy\n", found.contradictions);
    }
    text += &match found.huge {
        Some(huge) => format!(
            "In huge pages {} of {} pairs of pages 1 MiB apart collide, and {} of {} pairs 512 KiB apart.\n",
            huge.equal_colliding, huge.equal, huge.different_colliding, huge.different
        ),
        None => "The kernel gave no huge pages to try.\n".into(),
    };
    text
}

/// Returns all of it in one sentence.
pub fn sentence(found: &PagePairs) -> String {
    let chance = found.pairs as f64 / 256.0;
    if found.colliding == 0 {
        return format!(
            "None of {} pairs of pages collides: by equal low 20 physical bits {chance:.0} would have, and any that \
             made a copy {FACTOR} times slower would have been seen.",
            found.pairs
        );
    }
    let times = found.costs.first().map_or(0.0, |cost| cost.measured);
    let by = match &found.pagemap {
        Some(Agreement { probe_only: 0, pagemap_only: 0, .. }) => {
            "exactly those that agree in the low 20 bits of the physical address".into()
        }
        Some(agreement) => format!(
            "of which {} agree in the low 20 bits of what the kernel calls physical, {} do not, and {} that agree do \
             not collide: the kernel's account and the probe differ",
            agreement.both, agreement.probe_only, agreement.pagemap_only
        ),
        None => format!("where {chance:.0} would agree in the low 20 physical bits by chance"),
    };
    format!(
        "Of {} pairs of pages {} collide, {by}; a copy between two of them takes {times:.1} times as long.",
        found.pairs, found.colliding
    )
}

/// Draws what colliding costs by distance.
pub fn picture(found: &PagePairs) -> Drawing {
    let points = found.costs.iter().map(|cost| (cost.distance as f64, cost.measured)).collect();
    let law = found.costs.iter().map(|cost| (cost.distance as f64, cost.modelled));
    let labels = Labels {
        title: format!("{} of {} pairs of pages collide", found.colliding, found.pairs),
        across: "words from a load to the store before it (red: the law)".into(),
        up: "time over that between others",
    };
    let marked = law.filter(|_| found.colliding > 0).collect();
    Drawing { labels, points, marked, names: Vec::new() }
}
