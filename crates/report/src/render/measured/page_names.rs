//! Pages of a program that collide, by the names of what lies in them.

use memlode_measure::bias::page_names::PagesByName;

/// Returns the sentence, and the pairs that collide.
pub fn text(found: &PagesByName) -> String {
    let mut text = sentence(found) + "\n";
    for pair in &found.names {
        text += &format!(
            "  {:6} loads of {} ({}) after stores to {} ({}): a copy takes {:.1} × as long, {:.1}% of the call\n",
            pair.count,
            pair.load.data,
            pair.load.place,
            pair.store.data,
            pair.store.place,
            pair.measured,
            100.0 * pair.modelled
        );
    }
    text
}

/// Returns all of it in one sentence or three.
pub fn sentence(found: &PagesByName) -> String {
    let PagesByName { function, loads, pairs, tried, colliding, huge, .. } = found;
    if *loads == 0 {
        return format!(
            "In one call of {function} no load agrees in the low 12 bits with a store to another page shortly before, so \
             no pages can collide."
        );
    }
    let what = match found.names.first() {
        None => format!(
            "none of {tried} tried collides in this run; by chance {:.1} would",
            *tried as f64 / 256.0
        ),
        Some(first) => {
            let part = found.names.iter().map(|pair| pair.modelled).sum::<f64>();
            format!(
                "{colliding} of {tried} tried collide in this run, those of {} ({}) with {} ({}) first, with {} loads: a \
                 copy between them takes {:.1} times as long, and by its law these loads wait {:.0}% of the call",
                first.load.data,
                first.load.place,
                first.store.data,
                first.store.place,
                first.count,
                first.measured,
                100.0 * part.min(1.0)
            )
        }
    };
    let huge = match huge {
        0 => " In huge pages at these addresses none of these loads would collide.".to_owned(),
        huge => format!(" In huge pages at these addresses {huge} of these loads would collide."),
    };
    format!(
        "In one call of {function} {loads} loads agree in the low 12 bits with a store to another page shortly before, in \
         {pairs} pairs of pages; {what}.{huge}"
    )
}
