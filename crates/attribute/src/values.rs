//! A summary of the values that a program loads and stores: their range, and whether fewer bytes
//! would do.
//!
//! The types give the size of data, but not their sort. So numbers fit if all of them do as
//! unsigned ones, or all as signed ones in two's complement.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Values of some data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeenValues {
    /// Number of values.
    pub count: u64,
    /// Bytes of the widest, at most 8.
    pub bytes: u64,
    /// The least and the most of the integers, taken as unsigned numbers, and as signed ones.
    integers: Option<((u64, u64), (i64, i64))>,
    /// The floating-point numbers.
    floats: Option<SeenFloats>,
}

/// Floating-point numbers of some data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct SeenFloats {
    least: f64,
    most: f64,
    /// One that half as many bytes cannot hold exactly: if there are several, the one with the
    /// smallest bits.
    inexact: Option<u64>,
}

/// A value as a reader wants it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer, of data that have none below 0.
    Unsigned(u64),
    /// An integer.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Unsigned(number) => number.fmt(f),
            Number::Signed(number) => number.fmt(f),
            Number::Float(number) => number.fmt(f),
        }
    }
}

impl SeenValues {
    /// Adds a value of 1 to 8 bytes in memory order.
    pub fn add(&mut self, value: &[u8], is_float: bool) {
        let mut word = [0; 8];
        word[..value.len()].copy_from_slice(value);
        let word = u64::from_le_bytes(word);
        let mut one = SeenValues { count: 1, bytes: value.len() as u64, ..SeenValues::default() };
        if is_float {
            let number = match value.len() {
                4 => f64::from(f32::from_bits(word as u32)),
                8 => f64::from_bits(word),
                _ => f64::NAN,
            };
            let is_exact = value.len() == 8 && (number.is_nan() || f64::from(number as f32) == number);
            let inexact = (!is_exact).then_some(number.to_bits());
            one.floats = Some(SeenFloats { least: number, most: number, inexact });
        } else {
            let unused = 64 - 8 * value.len() as u32;
            let signed = ((word << unused) as i64) >> unused;
            one.integers = Some(((word, word), (signed, signed)));
        }
        self.join(&one);
    }

    /// Adds others of the same data. In which order does not matter.
    pub fn join(&mut self, other: &SeenValues) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.max(other.bytes);
        self.integers = match (self.integers, other.integers) {
            (Some((unsigned, signed)), Some((more_unsigned, more_signed))) => Some((
                (unsigned.0.min(more_unsigned.0), unsigned.1.max(more_unsigned.1)),
                (signed.0.min(more_signed.0), signed.1.max(more_signed.1)),
            )),
            (one, other) => one.or(other),
        };
        self.floats = match (self.floats, other.floats) {
            (Some(one), Some(other)) => Some(SeenFloats {
                least: one.least.min(other.least),
                most: one.most.max(other.most),
                inexact: one.inexact.into_iter().chain(other.inexact).min(),
            }),
            (one, other) => one.or(other),
        };
    }

    /// Returns the bits that all of them fit: integers as unsigned or as signed numbers,
    /// floating-point ones as such.
    pub fn bits(&self) -> u32 {
        match (self.floats, self.integers) {
            (None, None) => 0,
            (None, Some(((_, most), signed))) => unsigned_bits(most).min(signed_bits(signed)),
            (Some(SeenFloats { inexact: None, .. }), None) => 32,
            // Whoever reads a number's bytes as another sort of number wants all of them.
            (Some(_), _) => 8 * self.bytes.min(8) as u32,
        }
    }

    /// Returns whether all of them fit into this many bytes.
    pub fn fits(&self, bytes: u64) -> bool {
        match self.floats {
            Some(_) => bytes == 4 && self.bytes == 8 && self.bits() == 32,
            None => u64::from(self.bits()) <= 8 * bytes,
        }
    }

    /// Returns the value that all of them are; `None` if there are several, or none.
    pub fn only(&self) -> Option<Number> {
        let is_mixed = self.floats.is_some() && self.integers.is_some();
        self.range().filter(|(least, most)| least == most && !is_mixed).map(|(value, _)| value)
    }

    /// Returns the least and the most of them; `None` if there are none.
    pub fn range(&self) -> Option<(Number, Number)> {
        match (self.floats, self.integers) {
            (Some(SeenFloats { least, most, .. }), _) => Some((Number::Float(least), Number::Float(most))),
            (None, Some(((least, most), signed))) if unsigned_bits(most) <= signed_bits(signed) => {
                Some((Number::Unsigned(least), Number::Unsigned(most)))
            }
            (None, Some((_, (least, most)))) => Some((Number::Signed(least), Number::Signed(most))),
            (None, None) => None,
        }
    }

    /// Returns the value that needs most bits, or that fewer do not hold exactly.
    pub fn widest(&self) -> Number {
        if let Some(bits) = self.floats.and_then(|floats| floats.inexact) {
            return Number::Float(f64::from_bits(bits));
        }
        match self.range() {
            Some((Number::Signed(least), Number::Signed(most))) => {
                Number::Signed(if signed_bits((least, least)) > signed_bits((most, most)) {
                    least
                } else {
                    most
                })
            }
            Some((_, most)) => most,
            None => Number::Unsigned(0),
        }
    }
}

fn unsigned_bits(most: u64) -> u32 {
    64 - most.leading_zeros()
}

fn signed_bits((least, most): (i64, i64)) -> u32 {
    let bits = |number: i64| 65 - (number ^ (number >> 63)).leading_zeros();
    bits(least).max(bits(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(values: &[i64], bytes: usize) -> SeenValues {
        let mut seen = SeenValues::default();
        values.iter().for_each(|value| seen.add(&value.to_le_bytes()[..bytes], false));
        seen
    }

    #[test]
    fn numbers_fit_if_all_do_in_one_way() {
        assert!(seen(&[0, 255], 8).fits(1) && !seen(&[0, 256], 8).fits(1));
        assert!(seen(&[-128, 127], 4).fits(1) && !seen(&[-129], 4).fits(1));
        assert!(!seen(&[-1, 255], 4).fits(1), "neither all as signed ones nor all as unsigned ones");
        assert!(seen(&[-1, 255], 4).fits(2));
        assert!(seen(&[i64::MAX], 8).fits(8) && !seen(&[i64::MAX], 8).fits(4));
        assert_eq!(seen(&[3, 70_000, 2], 8).widest().to_string(), "70000");
        assert_eq!(seen(&[-1, -70_000], 8).widest().to_string(), "-70000");
        assert_eq!(seen(&[-3, 200], 2).range(), Some((Number::Signed(-3), Number::Signed(200))));
        assert_eq!(seen(&[-3, 200], 2).bits(), 9);
    }

    #[test]
    fn floating_point_numbers_fit_if_none_loses_a_digit() {
        let seen = |values: &[f64]| {
            let mut seen = SeenValues::default();
            values.iter().for_each(|value| seen.add(&value.to_le_bytes(), true));
            seen
        };
        assert!(seen(&[0.5, -3.0, 1e10]).fits(4) && !seen(&[0.5]).fits(2));
        assert!(!seen(&[0.5, 0.1]).fits(4) && !seen(&[1e300]).fits(4));
        assert_eq!(seen(&[706.5, 0.1, 0.2]).widest().to_string(), "0.1");
        assert_eq!(seen(&[706.5, 0.1]).range(), Some((Number::Float(0.1), Number::Float(706.5))));
        let mut mixed = seen(&[0.5]);
        mixed.add(&7u64.to_le_bytes(), false);
        assert!(!mixed.fits(4), "who reads its bytes as an integer wants all of them");
    }
}
