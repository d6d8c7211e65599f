//! Record batches in the layout of the Arrow columnar format 1.5.

use std::sync::Arc;

/// A column's name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub ty: Type,
    /// Whether values may be missing.
    pub nullable: bool,
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Unsigned, 64 bits.
    U64,
    /// Unsigned, 32 bits.
    U32,
    /// A bit.
    Bool,
    /// Text by keys of 8 bits: few different ones.
    Keys8,
    /// Text by keys of 32 bits.
    Keys32,
}

impl Type {
    /// Whether its values are keys of texts.
    pub fn is_text(self) -> bool {
        matches!(self, Type::Keys8 | Type::Keys32)
    }
}

/// Texts, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strings {
    /// Where each begins, and where the last one ends.
    offsets: Vec<i32>,
    bytes: Vec<u8>,
}

impl Default for Strings {
    fn default() -> Strings {
        Strings { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Strings {
    /// Of these texts.
    pub fn of<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Strings {
        let mut strings = Strings::default();
        texts.into_iter().for_each(|text| {
            strings.push(text.as_ref());
        });
        strings
    }

    /// Adds one; returns its number. Offsets have 31 bits: what goes beyond is empty.
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

    /// How many.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where each begins, and where the last one ends.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// [`Type::U64`]
    U64(Vec<u64>),
    /// [`Type::U32`]
    U32(Vec<u32>),
    /// [`Type::Bool`]: a bit for each row, the first one lowest.
    Bits(Vec<u8>),
    /// [`Type::Keys8`]
    Keys8(Vec<i8>, Arc<Strings>),
    /// [`Type::Keys32`]
    Keys32(Vec<i32>, Arc<Strings>),
}

impl Values {
    /// As they lie in memory.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Values::U64(values) => bytemuck::cast_slice(values),
            Values::U32(values) => bytemuck::cast_slice(values),
            Values::Bits(bits) => bits,
            Values::Keys8(keys, _) => bytemuck::cast_slice(keys),
            Values::Keys32(keys, _) => bytemuck::cast_slice(keys),
        }
    }

    /// What keys stand for.
    pub fn strings(&self) -> Option<&Arc<Strings>> {
        match self {
            Values::Keys8(_, strings) | Values::Keys32(_, strings) => Some(strings),
            _ => None,
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its values; where one is missing, whatever.
    pub values: Values,
    /// Which are there; `None`: all.
    pub validity: Option<Validity>,
}

impl From<Values> for Column {
    fn from(values: Values) -> Column {
        Column { values, validity: None }
    }
}

impl Column {
    /// Keys of texts; a negative one stands for none.
    pub fn of_keys(keys: Vec<i32>, strings: &Arc<Strings>) -> Column {
        let validity = Validity::of(&keys, |key| key >= 0);
        Column { values: Values::Keys32(keys, strings.clone()), validity }
    }

    /// The same of few.
    pub fn of_short_keys(keys: Vec<i8>, strings: &Arc<Strings>) -> Column {
        let validity = Validity::of(&keys, |key| key >= 0);
        Column { values: Values::Keys8(keys, strings.clone()), validity }
    }

    /// Numbers, of which 0 stands for none.
    pub fn of_positive(values: Vec<u32>) -> Column {
        let validity = Validity::of(&values, |value| value != 0);
        Column { values: Values::U32(values), validity }
    }
}

impl Validity {
    /// `None` if all are there.
    fn of<T: Copy>(values: &[T], is_there: impl Fn(T) -> bool) -> Option<Validity> {
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

/// The same behind what there is.
pub(crate) fn put_bits<T: Copy>(bits: &mut Vec<u8>, values: &[T], is_set: impl Fn(T) -> bool) {
    let byte = |eight: &[T]| {
        eight.iter().enumerate().fold(0, |byte, (at, &value)| byte | u8::from(is_set(value)) << at)
    };
    bits.extend(values.chunks(8).map(byte));
}

/// A record batch: columns in the order of a schema, equally long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Rows.
    pub rows: usize,
    /// The columns.
    pub columns: Vec<Column>,
}

/// The memory of an earlier batch, column by column.
pub(crate) struct Spares(std::vec::IntoIter<Column>);

impl Spares {
    pub fn of(columns: Vec<Column>) -> Spares {
        Spares(columns.into_iter())
    }

    /// Empty memory for the next column.
    pub fn next_u64(&mut self) -> Vec<u64> {
        match self.0.next() {
            Some(Column { values: Values::U64(values), .. }) => emptied(values),
            _ => Vec::new(),
        }
    }

    pub fn next_u32(&mut self) -> Vec<u32> {
        match self.0.next() {
            Some(Column { values: Values::U32(values), .. }) => emptied(values),
            _ => Vec::new(),
        }
    }

    pub fn next_i8(&mut self) -> Vec<i8> {
        match self.0.next() {
            Some(Column { values: Values::Keys8(values, _), .. }) => emptied(values),
            _ => Vec::new(),
        }
    }

    pub fn next_i32(&mut self) -> Vec<i32> {
        match self.0.next() {
            Some(Column { values: Values::Keys32(values, _), .. }) => emptied(values),
            _ => Vec::new(),
        }
    }

    pub fn next_bits(&mut self) -> Vec<u8> {
        match self.0.next() {
            Some(Column { values: Values::Bits(values), .. }) => emptied(values),
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
        let column = Column::of_keys(vec![0, -1, 2, 1, 0, 0, 0, 0, -1, 2], &texts);
        assert_eq!(column.validity, Some(Validity { bits: vec![0b1111_1101, 0b10], nulls: 2 }));
        assert_eq!(Column::of_positive(vec![1, 2]).validity, None);
        assert_eq!(Values::U32(vec![1, 256]).bytes(), [1, 0, 0, 0, 0, 1, 0, 0]);
    }
}
