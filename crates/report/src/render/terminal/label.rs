//! Names and places that have to fit a column.
//!
//! The most important parts are never cut: `file:line`, and the last component of a name. The first
//! to go are namespaces, then callers that distinguish no two rows, then functions beside a line.

use std::collections::HashMap;

use unicode_width::UnicodeWidthStr;

use crate::render::text::{cut, printable};

/// Columns that a name keeps when it is cut.
const LEAST_NAME: usize = 8;

/// Rows that begin alike are compared with each other, up to this many.
const COMPARED: usize = 64;

/// Text in pieces.
#[derive(Clone, Debug, Default)]
pub struct Label(Vec<Piece>);

#[derive(Clone, Debug)]
struct Piece {
    text: String,
    role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Role {
    /// Is never cut.
    Fixed,
    /// May lose its namespaces, and then its middle.
    Name,
    /// May be shortened as a name, and left out with the parts in front of it.
    Beside,
    /// A caller; left out where others distinguish more.
    Caller,
    /// A caller in code that the user cannot change; left out before the others.
    ForeignCaller,
}

impl Role {
    fn is_caller(self) -> bool {
        matches!(self, Role::Caller | Role::ForeignCaller)
    }
}

impl Label {
    /// Adds text that is never cut.
    pub fn fixed(mut self, text: &str) -> Label {
        self.0.push(Piece { text: printable(text).into_owned(), role: Role::Fixed });
        self
    }

    /// Adds a name that may be shortened.
    pub fn name(mut self, text: &str) -> Label {
        self.0.push(Piece { text: printable(text).into_owned(), role: Role::Name });
        self
    }

    /// Adds a name, behind a space, that may be left out.
    pub fn beside(mut self, text: &str) -> Label {
        self.0.push(Piece { text: format!(" {}", printable(text)), role: Role::Beside });
        self
    }

    /// Adds a caller, behind an arrow.
    pub fn caller(self, text: &str) -> Label {
        self.any_caller(text, Role::Caller)
    }

    /// Adds a caller that is left out before the others.
    pub fn foreign_caller(self, text: &str) -> Label {
        self.any_caller(text, Role::ForeignCaller)
    }

    fn any_caller(mut self, text: &str, role: Role) -> Label {
        self.0.push(Piece { text: format!(" ← {}", printable(text)), role });
        self
    }

    /// Adds the pieces of another label.
    pub fn then(mut self, other: Label) -> Label {
        self.0.extend(other.0);
        self
    }

    /// All of it.
    pub fn whole(&self) -> String {
        self.0.iter().map(|piece| piece.text.as_str()).collect()
    }

    /// Columns of all of it.
    pub fn width(&self) -> usize {
        self.0.iter().map(|piece| piece.text.width()).sum()
    }

    /// Columns that it takes without optional parts, and with names down to their last component.
    pub fn least_width(&self) -> usize {
        let pieces = self.0.iter().filter(|piece| piece.role != Role::Beside && !piece.role.is_caller());
        pieces.map(|piece| piece.shortened().width()).sum()
    }

    /// Returns the text in at most this many columns. It is wider only if the parts that are never
    /// cut are.
    pub fn fit(&self, room: usize) -> String {
        self.fit_beside(room, &[])
    }

    /// The same, where callers of these numbers distinguish rows and stay as long as others can go.
    fn fit_beside(&self, room: usize, telling: &[usize]) -> String {
        if self.width() <= room {
            return self.whole();
        }
        let mut pieces: Vec<Piece> = self.0.clone();
        let width = |pieces: &[Piece]| pieces.iter().map(|piece| piece.text.width()).sum::<usize>();
        // Namespaces go first, from the end on.
        for at in (0..pieces.len()).rev() {
            if width(&pieces) > room {
                pieces[at].text = pieces[at].shortened();
            }
        }
        // Then callers, from the outermost on: foreign ones that tell nothing, others that tell nothing, the rest.
        let callers: Vec<usize> = (0..pieces.len()).filter(|&at| pieces[at].role.is_caller()).collect();
        let is_foreign = |number: usize| pieces[callers[number]].role == Role::ForeignCaller;
        let mut order: Vec<usize> = (0..callers.len()).rev().collect();
        order.sort_by_key(|&number| (telling.contains(&number), !is_foreign(number)));
        for number in order {
            if width(&pieces) > room {
                pieces[callers[number]].text = " ← …".to_string();
                merge_gaps(&mut pieces, &callers);
            }
        }
        for at in (0..pieces.len()).rev() {
            if width(&pieces) > room && (pieces[at].role == Role::Beside || pieces[at].role.is_caller()) {
                let least = pieces[at].text.width().min(LEAST_NAME);
                let over = width(&pieces) - room;
                let keep = pieces[at].text.width().saturating_sub(over);
                pieces[at].text = if keep >= least && pieces[at].role == Role::Beside {
                    cut(&pieces[at].text, keep).into_owned()
                } else {
                    String::new()
                };
            }
        }
        for at in 0..pieces.len() {
            let over = width(&pieces).saturating_sub(room);
            if over > 0 && pieces[at].role == Role::Name {
                let keep = pieces[at].text.width().saturating_sub(over);
                let least = pieces[at].text.width().min(LEAST_NAME);
                pieces[at].text = cut(&pieces[at].text, keep.max(least)).into_owned();
            }
        }
        pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    fn callers(&self) -> Vec<&str> {
        let callers = self.0.iter().filter(|piece| piece.role.is_caller());
        callers.map(|piece| piece.text.as_str()).collect()
    }

    fn head(&self) -> String {
        let head = self.0.iter().take_while(|piece| !piece.role.is_caller());
        head.map(|piece| piece.text.as_str()).collect()
    }
}

/// One mark for callers side by side that were left out.
fn merge_gaps(pieces: &mut [Piece], callers: &[usize]) {
    let mut was_gap = false;
    for &at in callers {
        let is_gap = pieces[at].text == " ← …" || (pieces[at].text.is_empty() && was_gap);
        if is_gap && was_gap {
            pieces[at].text.clear();
        }
        was_gap = is_gap;
    }
}

impl Piece {
    /// A name by its last component: `…push_back` for `std::vector<int>::push_back`; a place in front of it stays.
    fn shortened(&self) -> String {
        if self.role == Role::Fixed {
            return self.text.clone();
        }
        let start = self.text.find(|c: char| c != ' ' && c != '←').unwrap_or(0);
        let is_place = |word: &str| {
            word.rsplit_once(':')
                .is_some_and(|(_, line)| !line.is_empty() && line.bytes().all(|digit| digit.is_ascii_digit()))
        };
        let place = self.text[start..].split_once(' ').filter(|(first, _)| is_place(first));
        let (before, name) = self.text.split_at(start + place.map_or(0, |(first, _)| first.len() + 1));
        match last_component(name) {
            Some(last) if last + '…'.len_utf8() < name.len() => format!("{before}…{}", &name[last..]),
            _ => self.text.clone(),
        }
    }
}

/// Returns where the last component of a name begins, if there are several.
fn last_component(name: &str) -> Option<usize> {
    let (mut depth, mut last) = (0i32, None);
    let bytes = name.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' | b'}' | b']' => depth -= 1,
            b':' if depth == 0 && at > 0 && bytes[at - 1] == b':' && at + 1 < bytes.len() => {
                last = Some(at + 1)
            }
            _ => {}
        }
    }
    last
}

/// The amount of a name that is shown.
pub type Detail = u8;

/// The full name.
pub const MOST_DETAIL: Detail = 2;

/// The texts of rows in columns of these widths: no two rows are the same. Rows that would be get more detail, and a
/// number where that does not help.
pub fn distinct<S>(
    rows: &[S],
    label: impl Fn(&S, Detail) -> Vec<Label>,
    widths: &[usize],
) -> Vec<Vec<String>> {
    let mut details: Vec<Detail> = vec![0; rows.len()];
    loop {
        let labels: Vec<Vec<Label>> = rows.iter().zip(&details).map(|(row, &d)| label(row, d)).collect();
        let telling = telling(&labels, &details);
        let mut texts: Vec<Vec<String>> = Vec::with_capacity(rows.len());
        for (labels, telling) in labels.iter().zip(&telling) {
            let fit = |(label, &width): (&Label, &usize)| label.fit_beside(width, telling);
            texts.push(labels.iter().zip(widths).map(fit).collect());
        }
        let mut groups: HashMap<&[String], Vec<usize>> = HashMap::new();
        for (number, text) in texts.iter().enumerate() {
            groups.entry(text).or_default().push(number);
        }
        let same: Vec<Vec<usize>> = groups.into_values().filter(|rows| rows.len() > 1).collect();
        let raised: Vec<usize> =
            same.iter().flatten().copied().filter(|&row| details[row] < MOST_DETAIL).collect();
        if raised.is_empty() {
            let shorter = shorter(rows, &label, widths, &texts, &same);
            for (rows, shorter) in same.into_iter().zip(shorter) {
                if let Some(shorter) = shorter {
                    rows.iter().for_each(|&row| texts[row].clone_from(&shorter));
                }
                for (count, row) in rows.into_iter().enumerate().skip(1) {
                    if let Some(text) = texts[row].first_mut() {
                        text.push_str(&format!(" #{}", count + 1));
                    }
                }
            }
            return texts;
        }
        raised.into_iter().for_each(|row| details[row] += 1);
    }
}

/// Returns, by group of rows that are the same with all detail, the texts with the least detail
/// that are unique: more would only fill the line.
fn shorter<S>(
    rows: &[S],
    label: &impl Fn(&S, Detail) -> Vec<Label>,
    widths: &[usize],
    texts: &[Vec<String>],
    same: &[Vec<usize>],
) -> Vec<Option<Vec<String>>> {
    let mut found = vec![None; same.len()];
    if same.is_empty() {
        return found;
    }
    for detail in (0..MOST_DETAIL).rev() {
        let fit = |(label, &width): (&Label, &usize)| label.fit(width);
        let text = |row: &S| label(row, detail).iter().zip(widths).map(fit).collect::<Vec<String>>();
        let brief: Vec<Vec<String>> = rows.iter().map(text).collect();
        let mut taken: HashMap<&[String], usize> = HashMap::new();
        brief.iter().chain(texts).for_each(|text| *taken.entry(text).or_default() += 1);
        for (group, found) in same.iter().zip(&mut found) {
            let text = &brief[group[0]];
            let of_group = group.iter().filter(|&&row| brief[row] == *text).count();
            if of_group == group.len() && taken[text.as_slice()] == group.len() {
                *found = Some(text.clone());
            }
        }
    }
    found
}

/// Returns, by row, the callers at which it first differs from others that begin alike and are
/// shown in as much detail.
fn telling(labels: &[Vec<Label>], details: &[Detail]) -> Vec<Vec<usize>> {
    let mut telling = vec![Vec::new(); labels.len()];
    let Some(column) =
        labels.first().and_then(|row| row.iter().position(|label| !label.callers().is_empty()))
    else {
        return telling;
    };
    let mut alike: HashMap<(String, Detail), Vec<usize>> = HashMap::new();
    for (number, (row, &detail)) in labels.iter().zip(details).enumerate() {
        alike.entry((row[column].head(), detail)).or_default().push(number);
    }
    for rows in alike.into_values().filter(|rows| rows.len() <= COMPARED) {
        for &row in &rows {
            for other in rows.iter().filter(|other| **other != row) {
                let (one, other) = (labels[row][column].callers(), labels[*other][column].callers());
                let first = one.iter().zip(&other).position(|(a, b)| a != b).unwrap_or(other.len());
                if first < one.len() && !telling[row].contains(&first) {
                    telling[row].push(first);
                }
            }
        }
    }
    telling
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Label {
        Label::default().fixed("container.h:1234").beside("ns::inner::Table<int>::lookup")
    }

    #[test]
    fn a_file_and_its_line_are_never_cut() {
        assert_eq!(place().fit(80), "container.h:1234 ns::inner::Table<int>::lookup");
        assert_eq!(place().fit(30), "container.h:1234 …lookup");
        assert_eq!(place().fit(20), "container.h:1234");
        assert_eq!(place().fit(5), "container.h:1234");
    }

    #[test]
    fn names_lose_their_heads_first() {
        let name = Label::default().name("a::bb::Long").name(".member");
        assert_eq!(name.fit(13), "…Long.member");
        assert_eq!(name.fit(12), "…Long.member");
        let long = Label::default().name("an_extremely_long_type_name").name(".member");
        assert_eq!(long.fit(20), "an_ext…e_name.member");
    }

    #[test]
    fn callers_stay_where_they_differ() {
        let path = |callers: &[&str]| {
            callers.iter().fold(Label::default().fixed("a.c:7"), |label, caller| label.caller(caller))
        };
        let rows =
            [path(&["grow", "push", "read_orders", "main"]), path(&["grow", "push", "read_items", "main"])];
        let texts = distinct(&rows, |row, _| vec![row.clone()], &[30]);
        assert_eq!(texts, [["a.c:7 ← … ← read_orders ← …"], ["a.c:7 ← … ← read_items ← …"]]);
    }

    #[test]
    fn a_caller_keeps_its_line() {
        let label = Label::default().fixed("a.rs:7").caller("main.rs:55 json::main");
        assert_eq!(label.fit(27), "a.rs:7 ← main.rs:55 …main");
    }

    #[test]
    fn foreign_callers_go_first() {
        let label = Label::default().fixed("a.rs:7").foreign_caller("grow").foreign_caller("push");
        let label = label.caller("read_orders").caller("main");
        assert_eq!(label.fit(40), "a.rs:7 ← grow ← … ← read_orders ← main");
        assert_eq!(label.fit(33), "a.rs:7 ← … ← read_orders ← main");
        assert_eq!(label.fit(28), "a.rs:7 ← … ← read_orders ← …");
    }

    #[test]
    fn no_two_rows_are_the_same() {
        let rows = [
            ("x", "one"),
            ("x", "two"),
            ("y", "one"),
            ("z", "same"),
            ("z", "same"),
            ("w", "one"),
            ("w", "two"),
            ("w", "two"),
        ];
        let label = |row: &(&str, &str), detail: Detail| {
            let label = Label::default().name(row.0);
            vec![if detail > 0 { label.fixed(&format!(" ({})", row.1)) } else { label }]
        };
        let texts = distinct(&rows, label, &[20]).concat();
        assert_eq!(texts, ["x (one)", "x (two)", "y", "z", "z #2", "w (one)", "w (two)", "w (two) #2"]);
    }

    #[test]
    fn last_components() {
        for (name, last) in [
            ("a::b", Some("b")),
            ("a::f<b::c>", Some("f<b::c>")),
            ("<a::B as c::D>::e", Some("e")),
            ("f", None),
            ("a::", None),
        ] {
            assert_eq!(last_component(name).map(|at| &name[at..]), last, "{name}");
        }
    }
}
