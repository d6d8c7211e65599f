//! Names that may have been meant by one that is not known.

use std::cmp::Reverse;

use strsim::damerau_levenshtein;

/// Letters that differ at most where one name was meant and another written.
const SLIPS: usize = 2;

/// Names that are returned at most.
const MOST: usize = 6;

/// Returns the names of which this one may be a misspelling, and then the most similar ones; only a
/// few.
#[must_use]
pub fn nearest(name: &str, mut all: Vec<String>) -> Vec<String> {
    let common = |other: &str| {
        let (a, b) = (name.to_lowercase(), other.to_lowercase());
        let prefix = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
        let within = if b.contains(&a) || a.contains(&b) { a.len().min(b.len()) } else { 0 };
        prefix.max(within)
    };
    all.sort_by_cached_key(|other| {
        let slips = damerau_levenshtein(name, other);
        let is_slip = slips <= SLIPS && slips < other.chars().count();
        (!is_slip, Reverse(common(other)), slips)
    });
    all.truncate(MOST);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_comes_before_what_shares_a_beginning() {
        let known = ["iterator", "state", "item", "tiebreak"].map(String::from).to_vec();
        assert_eq!(nearest("tiem", known.clone())[0], "item");
        assert_eq!(nearest("iterat", known)[0], "iterator");
        let nested = ["net::Packet", "packing"].map(String::from).to_vec();
        assert_eq!(nearest("Packet", nested)[0], "net::Packet");
    }
}
