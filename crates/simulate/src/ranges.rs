//! Facts that hold for ranges of addresses, in every address space.

use std::collections::BTreeMap;

use crate::space::Space;

/// Ranges that do not overlap, in the order of the addresses.
#[derive(Clone, Debug)]
pub(crate) struct Ranges<T> {
    /// First address, the address behind the last one, and the value between them.
    parts: Vec<(u64, u64, T)>,
}

impl<T: Copy> Ranges<T> {
    /// `(first, end, value)` each, `end` not included; where some overlap, the later one holds.
    pub fn new(ranges: impl IntoIterator<Item = (u64, u64, T)>) -> Ranges<T> {
        let mut parts: BTreeMap<u64, (u64, T)> = BTreeMap::new();
        for (first, end, value) in ranges.into_iter().filter(|(first, end, _)| first < end) {
            // What begins in front of the range may go on behind it; what begins in it may, too.
            let before = parts.range(..first).next_back().map(|(start, _)| *start);
            let inside = parts.range(first..end).map(|(start, _)| *start);
            for start in before.into_iter().chain(inside).collect::<Vec<_>>() {
                let Some((stop, old)) = parts.remove(&start) else { continue };
                if start < first {
                    parts.insert(start, (stop.min(first), old));
                }
                if stop > end {
                    parts.insert(end, (stop, old));
                }
            }
            parts.insert(first, (end, value));
        }
        Ranges { parts: parts.into_iter().map(|(first, (end, value))| (first, end, value)).collect() }
    }

    /// Returns whether nothing holds anywhere.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Returns the value at an address, in any address space.
    #[inline]
    pub fn of(&self, address: u64) -> Option<T> {
        if self.parts.is_empty() {
            return None;
        }
        let address = Space::within(address);
        let before = self.parts.partition_point(|(first, _, _)| *first <= address);
        let (_, end, value) = self.parts[before.checked_sub(1)?];
        (address < end).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_latest_range_holds(ranges in prop::collection::vec((0u64..40, 0u64..40), 0..12)) {
            let numbered: Vec<_> = ranges.iter().zip(0..).map(|(&(first, end), i)| (first, end, i)).collect();
            let built = Ranges::new(numbered.iter().copied());
            for address in 0..42 {
                let latest = numbered.iter().rfind(|(first, end, _)| (*first..*end).contains(&address));
                prop_assert_eq!(built.of(address), latest.map(|(_, _, i)| *i));
                prop_assert_eq!(built.of(Space::of(7).place(address)), built.of(address));
            }
        }
    }
}
