//! Record batches in the layout of the Arrow columnar format 1.5.

use std::sync::Arc;

/// A column's name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub ty: ColumnType,
    /// True if values may be missing.
    pub nullable: bool,
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// Unsigned, 64 bits.
    U64,
    /// Unsigned, 32 bits.
    U32,
    /// Signed, 64 bits.
    I64,
    /// Floating, 64 bits.
    F64,
    /// A bit.
    Bool,
    /// Text by keys of 8 bits: few different ones.
    Keys8,
    /// Text by keys of 32 bits.
    Keys32,
    /// A list of texts.
    TextLists,
    /// A list of unsigned numbers of 64 bits.
    U64Lists,
}

/// Texts, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings {
    /// The beginning of each, and the end of the last one.
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Default for Strings {
    fn default() -> Strings {
        Strings { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Strings {
    /// Makes the column of these texts.
    pub fn of<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Strings {
        let mut strings = Strings::default();
        texts.into_iter().for_each(|text| {
            strings.push(text.as_ref());
        });
        strings
    }

    /// Adds a text; returns its number. Offsets have 31 bits: texts beyond that are empty.
    pub fn push(&mut self, text: &str) -> i32 {
        let fits = self.bytes.len() + text.len() <= i32::MAX as usize;
        self.bytes.extend_from_slice(if fits { text.as_bytes() } else { b"" });
        self.offsets.push(self.bytes.len() as i32);
        self.len() as i32 - 1
    }

    /// The text of a number that [`Strings::push`] gave.
    pub fn get(&self, number: i32) -> &str {
        let at = number as usize;
        let text = &self.bytes[self.offsets[at] as usize..self.offsets[at + 1] as usize];
        // Texts come in whole, and go out whole.
        std::str::from_utf8(text).unwrap_or_default()
    }

    /// Returns how many.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns where each begins, and where the last one ends.
    pub fn offsets(&self) -> &[i32] {
        &self.offsets
    }

    /// The texts without anything in between.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Which values are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// A bit for each row, the first one lowest.
    pub bits: Vec<u8>,
    /// Rows without a value.
    pub nulls: usize,
}

/// Values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValues {
    /// [`ColumnType::U64`]
    U64(Vec<u64>),
    /// [`ColumnType::U32`]
    U32(Vec<u32>),
    /// [`ColumnType::I64`]
    I64(Vec<i64>),
    /// [`ColumnType::F64`]
    F64(Vec<f64>),
    /// [`ColumnType::Bool`]: a bit for each row, the first one lowest.
    Bits(Vec<u8>),
    /// [`ColumnType::Keys8`]
    Keys8(Vec<i8>, Arc<Strings>),
    /// [`ColumnType::Keys32`]
    Keys32(Vec<i32>, Arc<Strings>),
    /// [`ColumnType::TextLists`]: where each list begins among the texts, and where the last one ends.
    TextLists(Vec<i32>, Arc<Strings>),
    /// [`ColumnType::U64Lists`]: where each list begins among the numbers, and where the last one ends.
    U64Lists(Vec<i32>, Vec<u64>),
}

/// The values that the lists of a column are cut from.
pub enum ListItems<'a> {
    /// Texts.
    Texts(&'a Arc<Strings>),
    /// Numbers.
    U64(&'a [u64]),
}

impl ColumnValues {
    /// The bytes in memory; for lists, the beginning of each.
    pub fn bytes(&self) -> &[u8] {
        match self {
            ColumnValues::U64(values) => bytemuck::cast_slice(values),
            ColumnValues::U32(values) => bytemuck::cast_slice(values),
            ColumnValues::I64(values) => bytemuck::cast_slice(values),
            ColumnValues::F64(values) => bytemuck::cast_slice(values),
            ColumnValues::Bits(bits) => bits,
            ColumnValues::Keys8(keys, _) => bytemuck::cast_slice(keys),
            ColumnValues::Keys32(keys, _) => bytemuck::cast_slice(keys),
            ColumnValues::TextLists(offsets, _) | ColumnValues::U64Lists(offsets, _) => {
                bytemuck::cast_slice(offsets)
            }
        }
    }

    /// Returns the items that lists are cut from.
    pub fn items(&self) -> Option<ListItems<'_>> {
        match self {
            ColumnValues::TextLists(_, texts) => Some(ListItems::Texts(texts)),
            ColumnValues::U64Lists(_, numbers) => Some(ListItems::U64(numbers)),
            _ => None,
        }
    }

    /// Returns the strings that keys refer to.
    pub fn strings(&self) -> Option<&Arc<Strings>> {
        match self {
            ColumnValues::Keys8(_, strings) | ColumnValues::Keys32(_, strings) => Some(strings),
            _ => None,
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchColumn {
    /// Its values; missing ones may have any value.
    pub values: ColumnValues,
    /// Which are there; `None`: all.
    pub validity: Option<Validity>,
}

impl From<ColumnValues> for BatchColumn {
    fn from(values: ColumnValues) -> BatchColumn {
        BatchColumn { values, validity: None }
    }
}

impl BatchColumn {
    /// Keys of texts; a negative one stands for none.
    pub fn of_keys(keys: Vec<i32>, strings: &Arc<Strings>) -> BatchColumn {
        let validity = Validity::of(&keys, |key| key >= 0);
        BatchColumn { values: ColumnValues::Keys32(keys, strings.clone()), validity }
    }

    /// The same of few.
    pub fn of_short_keys(keys: Vec<i8>, strings: &Arc<Strings>) -> BatchColumn {
        let validity = Validity::of(&keys, |key| key >= 0);
        BatchColumn { values: ColumnValues::Keys8(keys, strings.clone()), validity }
    }

    /// Numbers, of which 0 stands for none.
    pub fn of_positive(values: Vec<u32>) -> BatchColumn {
        let validity = Validity::of(&values, |value| value != 0);
        BatchColumn { values: ColumnValues::U32(values), validity }
    }
}

impl Validity {
    /// `None` if all are there.
    pub(crate) fn of<T: Copy>(values: &[T], is_there: impl Fn(T) -> bool) -> Option<Validity> {
        let bits = bits(values, is_there);
        let there: u32 = bits.iter().map(|byte| byte.count_ones()).sum();
        let nulls = values.len() - there as usize;
        (nulls > 0).then_some(Validity { bits, nulls })
    }
}

/// A bit for each value, the first one lowest.
fn bits<T: Copy>(values: &[T], is_set: impl Fn(T) -> bool) -> Vec<u8> {
    let mut bits = Vec::with_capacity(values.len().div_ceil(8));
    put_bits(&mut bits, values, is_set);
    bits
}

/// Appends bits behind those that are there.
pub(crate) fn put_bits<T: Copy>(bits: &mut Vec<u8>, values: &[T], is_set: impl Fn(T) -> bool) {
    let byte = |eight: &[T]| {
        eight.iter().enumerate().fold(0, |byte, (at, &value)| byte | u8::from(is_set(value)) << at)
    };
    bits.extend(values.chunks(8).map(byte));
}

/// A record batch: columns in the order of a schema, equally long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArrowTable {
    /// Rows.
    pub rows: usize,
    /// The columns.
    pub columns: Vec<BatchColumn>,
}

/// The memory of an earlier batch, column by column.
pub(crate) struct Spares(std::vec::IntoIter<BatchColumn>);

impl Spares {
    pub fn of(columns: Vec<BatchColumn>) -> Spares {
        Spares(columns.into_iter())
    }

    /// Empty memory for the next column.
    pub fn next_u64(&mut self) -> Vec<u64> {
        match self.0.next() {
            Some(BatchColumn { values: ColumnValues::U64(values), .. }) => emptied(values),
            _ => Vec::new(),
        }
    }

    pub fn next_u32(&mut self) -> Vec<u32> {
        match self.0.next() {
            Some(BatchColumn { values: ColumnValues::U32(values), .. }) => emptied(values),
            _ => Vec::new(),
        }
    }

    pub fn next_i8(&mut self) -> Vec<i8> {
        match self.0.next() {
            Some(BatchColumn { values: ColumnValues::Keys8(values, _), .. }) => emptied(values),
            _ => Vec::new(),
        }
    }

    pub fn next_i32(&mut self) -> Vec<i32> {
        match self.0.next() {
            Some(BatchColumn { values: ColumnValues::Keys32(values, _), .. }) => emptied(values),
            _ => Vec::new(),
        }
    }

    pub fn next_bits(&mut self) -> Vec<u8> {
        match self.0.next() {
            Some(BatchColumn { values: ColumnValues::Bits(values), .. }) => emptied(values),
            _ => Vec::new(),
        }
    }
}

fn emptied<T>(mut values: Vec<T>) -> Vec<T> {
    values.clear();
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_a_zero_bit() {
        let texts = Arc::new(Strings::of(["a", "", "ü"]));
        assert_eq!((texts.get(0), texts.get(1), texts.get(2)), ("a", "", "ü"));
        let column = BatchColumn::of_keys(vec![0, -1, 2, 1, 0, 0, 0, 0, -1, 2], &texts);
        assert_eq!(column.validity, Some(Validity { bits: vec![0b1111_1101, 0b10], nulls: 2 }));
        assert_eq!(BatchColumn::of_positive(vec![1, 2]).validity, None);
        assert_eq!(ColumnValues::U32(vec![1, 256]).bytes(), [1, 0, 0, 0, 0, 1, 0, 0]);
    }
}
