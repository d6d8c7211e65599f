//! Pairs the rows of two tables, though files may have been renamed and lines moved.
//!
//! Names decide. Rows of the same names in the same function are distinguished by their lines. An
//! edit keeps the order of lines more often than their numbers, so they are paired in order. Where
//! one side has more of them, the pairs are chosen that moved by the same distance as the
//! function's other rows.

use std::collections::BTreeMap;

use crate::model::{Access, Data, Home, Object, Position, Type};

/// Groups larger than this on both sides are paired in order, as the table of distances would be too large.
const LARGEST: usize = 2000;

/// Something with names that another report may have, too.
pub trait Aligned {
    /// Names by which rows are matched, the strictest first. `None` if the row has no such name.
    fn keys(&self) -> Vec<Option<Key>>;

    /// The line by which rows of the same names are distinguished.
    fn line(&self) -> Option<u32> {
        None
    }
}

/// Names that make two rows the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    names: Vec<Option<String>>,
    /// True if rows are the same only if no other row of either side has these names.
    is_loose: bool,
}

impl Key {
    fn of<const N: usize>(names: [Option<&str>; N]) -> Option<Key> {
        Some(Key { names: names.map(|name| name.map(str::to_string)).to_vec(), is_loose: false })
    }

    fn loose<const N: usize>(names: [Option<&str>; N]) -> Option<Key> {
        Key::of(names).map(|key| Key { is_loose: true, ..key })
    }
}

/// Pairs of rows, by their indices; then the unpaired rows of the left, and those of the right.
pub fn align<S: Aligned>(before: &[S], after: &[S]) -> Vec<(Option<usize>, Option<usize>)> {
    let keys = |rows: &[S]| rows.iter().map(|row| row.keys()).collect::<Vec<_>>();
    let (keys_before, keys_after) = (keys(before), keys(after));
    let (mut free_before, mut free_after) = (vec![true; before.len()], vec![true; after.len()]);
    let mut pairs = Vec::new();
    let kinds = keys_before.iter().chain(&keys_after).map(Vec::len).max().unwrap_or(0);
    for kind in 0..kinds {
        let mut groups: BTreeMap<&Key, [Vec<usize>; 2]> = BTreeMap::new();
        for (side, (keys, free)) in
            [(&keys_before, &free_before), (&keys_after, &free_after)].into_iter().enumerate()
        {
            for (row, keys) in keys.iter().enumerate().filter(|(row, _)| free[*row]) {
                if let Some(Some(key)) = keys.get(kind) {
                    groups.entry(key).or_default()[side].push(row);
                }
            }
        }
        for (key, [mut left, mut right]) in groups {
            if key.is_loose && (left.len(), right.len()) != (1, 1) {
                continue;
            }
            left.sort_by_key(|&row| before[row].line());
            right.sort_by_key(|&row| after[row].line());
            let lines = |rows: &[usize], of: &[S]| -> Vec<u32> {
                rows.iter().map(|&row| of[row].line().unwrap_or(0)).collect()
            };
            for (l, r) in in_order(&lines(&left, before), &lines(&right, after)) {
                (free_before[left[l]], free_after[right[r]]) = (false, false);
                pairs.push((Some(left[l]), Some(right[r])));
            }
        }
    }
    let left =
        |free: &[bool]| free.iter().enumerate().filter(|(_, free)| **free).map(|(row, _)| row).collect();
    let (gone, new): (Vec<usize>, Vec<usize>) = (left(&free_before), left(&free_after));
    pairs.extend(gone.into_iter().map(|row| (Some(row), None)));
    pairs.extend(new.into_iter().map(|row| (None, Some(row))));
    pairs
}

/// Pairs the lines of two ascending lists in order, as many as the shorter list has, so that their
/// distances differ least from one another.
fn in_order(left: &[u32], right: &[u32]) -> Vec<(usize, usize)> {
    if left.len() == right.len() || left.len().max(right.len()) > LARGEST {
        return (0..left.len().min(right.len())).map(|row| (row, row)).collect();
    }
    if left.len() > right.len() {
        return in_order(right, left).into_iter().map(|(r, l)| (l, r)).collect();
    }
    // A code that moved as a whole moved by the distance of some pair: the one that leaves least to explain.
    let distances =
        |line: &u32| right.iter().map(|other| i64::from(*other) - i64::from(*line)).collect::<Vec<_>>();
    let mut candidates: Vec<i64> = left.first().map(distances).unwrap_or_default();
    candidates.push(0);
    candidates.sort_by_key(|distance| distance.abs());
    candidates.dedup();
    // Each is a table: a few of the nearest suffice where there are many.
    candidates.truncate(if left.len() * right.len() > 10_000 { 2 } else { 64 });
    let moved = candidates.into_iter().map(|distance| chosen(left, right, distance));
    moved.min_by_key(|(cost, _)| *cost).map(|(_, pairs)| pairs).unwrap_or_default()
}

/// The pairs that differ least from this distance, all of the left, and by how much they do.
fn chosen(left: &[u32], right: &[u32], distance: i64) -> (u64, Vec<(usize, usize)>) {
    let width = right.len() + 1;
    let cost = |l: usize, r: usize| (i64::from(right[r]) - i64::from(left[l]) - distance).unsigned_abs();
    // Least cost of the first l of the left among the first r of the right.
    let mut least = vec![u64::MAX; (left.len() + 1) * width];
    least[..width].fill(0);
    for l in 1..=left.len() {
        for r in l..=right.len() {
            let with = least[(l - 1) * width + r - 1].saturating_add(cost(l - 1, r - 1));
            least[l * width + r] = with.min(least[l * width + r - 1]);
        }
    }
    let (mut pairs, mut r) = (Vec::with_capacity(left.len()), right.len());
    for l in (1..=left.len()).rev() {
        while least[l * width + r] == least[l * width + r - 1] {
            r -= 1;
        }
        r -= 1;
        pairs.push((l - 1, r));
    }
    pairs.reverse();
    (least[left.len() * width + right.len()], pairs)
}

fn file_name(path: Option<&str>) -> Option<&str> {
    path.map(|path| path.rsplit('/').next().unwrap_or(path))
}

impl Data {
    fn names(&self) -> [Option<&str>; 3] {
        [self.ty.as_deref(), self.member.as_deref(), self.variable.as_deref()]
    }

    /// The same without the type, for one that was renamed or came out of another.
    fn untyped(&self) -> Option<[Option<&str>; 2]> {
        self.member.is_some().then_some([self.member.as_deref(), self.variable.as_deref()])
    }
}

impl Aligned for Data {
    fn keys(&self) -> Vec<Option<Key>> {
        vec![Key::of(self.names()), self.untyped().and_then(Key::loose)]
    }
}

impl Aligned for Access {
    fn keys(&self) -> Vec<Option<Key>> {
        let [ty, member, variable] = self.data.names();
        let Position { file, function, linkage_name, .. } = &self.position;
        let file = file.as_deref();
        let line = self.position.line.map(|line| line.to_string());
        let untyped = self.data.untyped();
        vec![
            Key::of([ty, member, variable, Some(linkage_name), file]),
            Key::of([ty, member, variable, Some(function), file_name(file)]),
            Key::of([ty, member, variable, Some(function)]),
            // A function that was renamed, or has other parameters.
            Key::loose([ty, member, variable, file, line.as_deref()]),
            untyped.and_then(|[member, variable]| Key::loose([member, variable, Some(function), file])),
        ]
    }

    fn line(&self) -> Option<u32> {
        self.position.line
    }
}

impl Aligned for Type {
    fn keys(&self) -> Vec<Option<Key>> {
        vec![Key::of([Some(&self.name)])]
    }
}

impl Aligned for Object {
    fn keys(&self) -> Vec<Option<Key>> {
        let element = self.element.as_deref();
        match &self.home {
            Home::Unknown => vec![Key::of([Some("unknown")])],
            Home::Heap { allocated_at, path, .. } => {
                let path = path.join("\n");
                let function = Some(&*allocated_at.function);
                vec![
                    Key::of([Some("heap"), element, function, Some(&path)]),
                    Key::of([Some("heap"), element, function]),
                    // The same code makes something of another type.
                    Key::loose([Some("heap"), function, Some(&path)]),
                ]
            }
            Home::Global { symbol, image } => {
                vec![
                    Key::of([Some("global"), Some(symbol), Some(image)]),
                    Key::of([Some("global"), Some(symbol)]),
                ]
            }
            Home::Stack { function, variable } => {
                vec![Key::of([Some("stack"), Some(function), variable.as_deref()])]
            }
        }
    }

    fn line(&self) -> Option<u32> {
        match &self.home {
            Home::Heap { allocated_at, called_at, .. } => {
                called_at.iter().flatten().next().unwrap_or(allocated_at).line
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn access(member: &str, function: &str, file: &str, line: u32) -> Access {
        Access {
            data: Data { ty: Some("row".into()), member: Some(member.into()), variable: None },
            position: Position {
                file: Some(file.into()),
                line: Some(line),
                function: function.into(),
                linkage_name: function.into(),
                ..Position::default()
            },
        }
    }

    fn pairs(before: &[Access], after: &[Access]) -> Vec<(Option<usize>, Option<usize>)> {
        let mut pairs = align(before, after);
        pairs.sort();
        pairs
    }

    #[test]
    fn moved_lines_keep_their_order_and_not_their_numbers() {
        let before = [access("a", "f", "x.c", 10), access("a", "f", "x.c", 11)];
        let after = [access("a", "f", "x.c", 11), access("a", "f", "x.c", 12)];
        assert_eq!(pairs(&before, &after), [(Some(0), Some(0)), (Some(1), Some(1))]);
    }

    #[test]
    fn a_line_that_was_added_is_the_one_that_moved_otherwise() {
        let before: Vec<Access> = [10, 12, 20].map(|line| access("a", "f", "x.c", line)).into();
        let after: Vec<Access> = [5, 15, 17, 25].map(|line| access("a", "f", "x.c", line)).into();
        let expected = [(None, Some(0)), (Some(0), Some(1)), (Some(1), Some(2)), (Some(2), Some(3))];
        assert_eq!(pairs(&before, &after), expected);
        let gone = [(Some(0), None), (Some(1), Some(0)), (Some(2), Some(1)), (Some(3), Some(2))];
        assert_eq!(pairs(&after, &before), gone);
    }

    #[test]
    fn files_functions_and_types_may_be_renamed() {
        let before = [access("a", "f", "src/x.c", 10), access("b", "g", "src/x.c", 20)];
        let renamed = [access("a", "f", "lib/y.c", 90), access("b", "h", "src/x.c", 20)];
        assert_eq!(pairs(&before, &renamed), [(Some(0), Some(0)), (Some(1), Some(1))]);
        let mut split = before.clone();
        split[0].data.ty = Some("row_cold".into());
        assert_eq!(pairs(&before, &split), [(Some(0), Some(0)), (Some(1), Some(1))]);
    }

    #[test]
    fn other_names_are_other_rows() {
        let before = [access("a", "f", "x.c", 10)];
        let after = [access("b", "f", "x.c", 10)];
        assert_eq!(pairs(&before, &after), [(None, Some(0)), (Some(0), None)]);
    }

    proptest! {
        /// Every row is in one pair, a table is aligned with itself row by row, and changing the sides changes nothing else.
        #[test]
        fn every_row_is_somewhere_once(
            lines in prop::collection::vec((0..3usize, 0..3usize, 1..30u32), 0..40),
            others in prop::collection::vec((0..3usize, 0..3usize, 1..30u32), 0..40),
        ) {
            let rows = |lines: &[(usize, usize, u32)]| {
                let mut lines = lines.to_vec();
                lines.sort();
                lines.dedup();
                let row = |&(member, function, line): &(usize, usize, u32)| {
                    access(["a", "b", "c"][member], ["f", "g", "h"][function], "x.c", line)
                };
                lines.iter().map(row).collect::<Vec<Access>>()
            };
            let (before, after) = (rows(&lines), rows(&others));
            let found = pairs(&before, &after);
            let mut left: Vec<usize> = found.iter().filter_map(|pair| pair.0).collect();
            let mut right: Vec<usize> = found.iter().filter_map(|pair| pair.1).collect();
            left.sort_unstable();
            right.sort_unstable();
            prop_assert!(left.into_iter().eq(0..before.len()));
            prop_assert!(right.into_iter().eq(0..after.len()));
            for (l, r) in &found {
                if let (Some(l), Some(r)) = (l, r) {
                    prop_assert_eq!(&before[*l].data.member, &after[*r].data.member);
                }
            }
            for (l, r) in pairs(&before, &before) {
                prop_assert_eq!(l, r);
            }
            prop_assert_eq!(found.len(), pairs(&after, &before).len());
        }
    }
}
