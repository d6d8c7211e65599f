//! Addresses that allocators give.

use comfy_table::{Table, presets};
use memlode_measure::bias::allocators::{Agreement, AllocatorRow, SIZES};

use super::ended_lines;
use super::picture::{Drawing, Labels};

/// Returns a table: a row for each allocator, a column for each size.
pub fn text(rows: &[AllocatorRow]) -> String {
    let mut table = Table::new();
    let size = |bytes: &usize| match bytes {
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes >> 10),
    };
    let head = ["allocator".to_owned(), "huge pages".into()].into_iter().chain(SIZES.iter().map(size));
    table.load_preset(presets::NOTHING).set_header(head);
    for row in rows {
        let asked = if row.huge { "asked for" } else { "" };
        let cells = [row.allocator.clone(), asked.into()].into_iter();
        table.add_row(cells.chain(row.sizes.iter().map(words)));
    }
    let head =
        "Low bits of addresses that agree in all (or some) of three consecutive pairs of equal buffers:\n";
    head.to_owned() + &ended_lines(&table)
}

/// Returns which bits agree: `none`, `low 12`, `low 12, low 20 (1 of 3)`.
fn words(found: &Agreement) -> String {
    let part = |bits: u32, count: usize| match count {
        0 => None,
        count if count == found.pairs => Some(format!("low {bits}")),
        count => Some(format!("low {bits} ({count} of {})", found.pairs)),
    };
    let parts = [part(12, found.low12), part(20, found.low20), part(21, found.low21)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}

/// Draws a tooth for each allocator and size; as high as the low bits that agree in every pair.
pub fn picture(rows: &[AllocatorRow]) -> Drawing {
    let mut points = Vec::new();
    let mut names = Vec::new();
    for row in rows {
        for (size, found) in SIZES.iter().zip(&row.sizes) {
            let bits = [(found.low21, 21), (found.low20, 20), (found.low12, 12)];
            let agree = bits.into_iter().find(|(pairs, _)| *pairs == found.pairs).map_or(0, |(_, bits)| bits);
            points.push((points.len() as f64, f64::from(agree)));
            let huge = if row.huge { ", huge pages" } else { "" };
            names.push(format!("{} {} KiB{huge}", row.allocator, size >> 10));
        }
    }
    let marked: Vec<(f64, f64)> = points.iter().copied().filter(|(_, bits)| *bits > 0.0).collect();
    let labels = Labels {
        title: "Low address bits that agree in consecutive equal buffers".into(),
        across: "allocator and size".into(),
        up: "bits",
    };
    Drawing { labels, points, marked, names }
}

#[cfg(test)]
mod tests {
    use memlode_measure::bias::allocators::agreement;

    use super::*;

    #[test]
    fn bits_that_agree() {
        let mib = 1 << 20;
        let found = agreement(&[mib, 2 * mib, 4 * mib + 4096, 6 * mib + 4096]);
        assert_eq!(words(&found), "low 12, low 20 (2 of 3), low 21 (1 of 3)");
        assert_eq!(words(&agreement(&[16, 32])), "none");
    }
}
