//! Tags of accesses, and every bit that shares a word with one.
//!
//! ```text
//!   bit             31        30        29 … 0
//!   tag             0         PART      a number
//!   request         SEVERAL   as of the tag; if SEVERAL, the number of an access to several lines that waits
//!   state of line   HELD      WRITTEN   number of the tag + 1, or 0: nobody's
//! ```

/// Marks a tag that stands for a part of an access.
const PART: u32 = 1 << 30;
/// Marks a request whose access goes to several lines.
const SEVERAL: u32 = 1 << 31;
/// Set in the state of a line while the cache holds it.
const HELD: u32 = 1 << 31;
/// Set as well if the cache was given the line back written.
const WRITTEN: u32 = 1 << 30;

/// Names the origin of an access, for the caller: results of a simulation are kept by tag.
///
/// A tag is a small number, as memory for results grows with the highest one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(u32);

/// The meaning of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagged {
    /// Accesses from one place, by its number.
    Place(u32),
    /// One part of an access of which others simulate the rest, by its number.
    Part(u32),
}

impl Tag {
    /// Numbers of places and parts are below this.
    pub const LIMIT: u32 = PART - 1;

    /// Returns the tag of a place; its number is below [`Tag::LIMIT`].
    #[inline(always)]
    pub const fn new(place: u32) -> Tag {
        Tag(place)
    }

    /// Returns the tag of a part of an access; its number is below [`Tag::LIMIT`].
    #[inline(always)]
    pub const fn part(number: u32) -> Tag {
        Tag(PART | number)
    }

    /// Returns what the tag stands for.
    #[inline(always)]
    pub const fn stands_for(self) -> Tagged {
        match self.0 & PART {
            0 => Tagged::Place(self.0),
            _ => Tagged::Part(self.0 & !PART),
        }
    }

    /// Returns the number of its place.
    #[inline(always)]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the number of its place, as an index.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The origin of a request: a tag, or an access to several lines, all of which have to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asker(u32);

impl Asker {
    #[inline(always)]
    pub fn one(tag: Tag) -> Asker {
        Asker(tag.0)
    }

    /// An access to several lines, by its number among those that wait.
    #[inline(always)]
    pub fn several(number: usize) -> Asker {
        Asker(SEVERAL | number as u32)
    }

    #[inline(always)]
    pub fn is_several(self) -> bool {
        self.0 & SEVERAL != 0
    }

    /// The tag of an access to one line, or the number of one to several.
    #[inline(always)]
    pub fn get(self) -> Result<Tag, usize> {
        match self.is_several() {
            false => Ok(Tag(self.0)),
            true => Err((self.0 & !SEVERAL) as usize),
        }
    }

    #[inline(always)]
    pub fn bits(self) -> u32 {
        self.0
    }

    #[inline(always)]
    pub fn of_bits(bits: u32) -> Asker {
        Asker(bits)
    }
}

/// The state of a line in a cache: whether it is there, and the tag of the accesses that fetched or
/// evicted it.
///
/// It is the high half of a word of the line's record; the low half belongs to the fully
/// associative cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineState(u32);

impl LineState {
    /// The cache holds the line, fetched for an access with this tag.
    #[inline(always)]
    pub fn held(tag: Tag) -> LineState {
        LineState((tag.0 + 1) | HELD)
    }

    /// The line left the cache, because of accesses with a tag, if there is one.
    #[inline(always)]
    pub fn left(by: Option<Tag>) -> LineState {
        LineState(by.map_or(0, |by| by.0 + 1))
    }

    /// Reads the state from a record's word.
    #[inline(always)]
    pub fn of(word: u64) -> LineState {
        LineState((word >> 32) as u32)
    }

    /// Puts the state into a record's word.
    #[inline(always)]
    pub fn put(self, word: &mut u64) {
        *word = u64::from(*word as u32) | u64::from(self.0) << 32;
    }

    #[inline(always)]
    pub fn is_held(self) -> bool {
        self.0 & HELD != 0
    }

    #[inline(always)]
    pub fn is_written(self) -> bool {
        self.0 & WRITTEN != 0
    }

    /// The cache was given the line back written.
    #[inline(always)]
    pub fn write(word: &mut u64) {
        *word |= u64::from(WRITTEN) << 32;
    }

    /// Returns the tag that fetched the line, if it is there, or else the tag that evicted it.
    #[inline(always)]
    pub fn whose(self) -> Option<Tag> {
        (self.0 & !(HELD | WRITTEN)).checked_sub(1).map(Tag)
    }

    /// Returns the tag that fetched the line, if it is there.
    #[inline(always)]
    pub fn fetched_by(self) -> Option<Tag> {
        if self.is_held() { self.whose() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_a_word_do_not_meet() {
        for number in [0, 1, 77, Tag::LIMIT - 1] {
            let (place, part) = (Tag::new(number), Tag::part(number));
            assert_eq!([place, part].map(Tag::stands_for), [Tagged::Place(number), Tagged::Part(number)]);
            assert_eq!([place, part].map(|tag| Asker::one(tag).get()), [Ok(place), Ok(part)]);
            assert_eq!(Asker::several(number as usize).get(), Err(number as usize));
            let mut word = 0x1234_5678;
            LineState::held(place).put(&mut word);
            assert_eq!(LineState::of(word).fetched_by(), Some(place));
            assert!(!LineState::of(word).is_written());
            LineState::write(&mut word);
            let state = LineState::of(word);
            assert_eq!((state.fetched_by(), state.is_written()), (Some(place), true));
            LineState::left(Some(place)).put(&mut word);
            let state = LineState::of(word);
            assert_eq!((state.fetched_by(), state.whose(), state.is_written()), (None, Some(place), false));
            LineState::left(None).put(&mut word);
            assert_eq!((word, LineState::of(word).whose()), (0x1234_5678, None));
        }
    }
}
