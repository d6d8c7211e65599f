//! Formats of other programs, one file each.

pub mod callgrind;
pub mod csv;
pub mod firefox;
pub mod folded;
pub mod pprof;
pub mod sarif;

use memlode_report::text::printable;

/// A name that ends no line and is not empty, for formats in which lines and blanks separate.
fn one_line(name: &str) -> String {
    match printable(name).trim() {
        "" => "???".to_string(),
        name => name.to_string(),
    }
}
