//! LEB128 integers and length-prefixed strings.

/// Why bytes could not be parsed; positions count from the start of the parsed buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the data end in the middle of a value, at byte {0}")]
    Short(usize),
    #[error("a number at byte {0} has more than 64 bits")]
    Long(usize),
    #[error("the value {value} at byte {at} is beyond its limit {limit}")]
    Beyond { at: usize, value: u64, limit: u64 },
}

/// Reads from the front of a buffer.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    pub fn position(&self) -> usize {
        self.at
    }

    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn u8(&mut self) -> Result<u8, Malformed> {
        let byte = *self.bytes.get(self.at).ok_or(Malformed::Short(self.at))?;
        self.at += 1;
        Ok(byte)
    }

    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let start = self.at;
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed::Long(start))
    }

    pub fn svarint(&mut self) -> Result<i64, Malformed> {
        self.varint().map(unzigzag)
    }

    /// A varint that must be below or equal to `limit`.
    pub fn up_to(&mut self, limit: u64) -> Result<u64, Malformed> {
        let at = self.at;
        match self.varint()? {
            value if value <= limit => Ok(value),
            value => Err(Malformed::Beyond { at, value, limit }),
        }
    }

    pub fn u32(&mut self) -> Result<u32, Malformed> {
        self.up_to(u32::MAX.into()).map(|value| value as u32)
    }

    /// An index into a list of `length` entries.
    pub fn index(&mut self, length: usize) -> Result<u32, Malformed> {
        let at = self.at;
        match self.varint()? {
            value if value < length as u64 => Ok(value as u32),
            value => Err(Malformed::Beyond { at, value, limit: (length as u64).saturating_sub(1) }),
        }
    }

    /// An index plus one; 0 means none.
    pub fn optional_index(&mut self, length: usize) -> Result<Option<u32>, Malformed> {
        Ok(self.up_to(length as u64)?.checked_sub(1).map(|index| index as u32))
    }

    /// The count of a list whose entries take at least one byte each, so it is refused if fewer
    /// bytes are left.
    pub fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.varint()?;
        if count > self.left() as u64 { Err(Malformed::Short(self.bytes.len())) } else { Ok(count as usize) }
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or(Malformed::Short(self.bytes.len()))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// A varint length and that many bytes.
    pub fn blob(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.count()?;
        self.take(length)
    }
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_svarint(out: &mut Vec<u8>, value: i64) {
    put_varint(out, zigzag(value));
}

pub(crate) fn put_blob(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_survive(value: u64, signed: i64) {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            put_svarint(&mut out, signed);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert_eq!(reader.svarint(), Ok(signed));
            prop_assert_eq!(reader.left(), 0);
        }
    }

    #[test]
    fn malformed_numbers_are_refused() {
        assert_eq!(Reader::new(&[0x80]).varint(), Err(Malformed::Short(1)));
        assert_eq!(Reader::new(&[0xff; 11]).varint(), Err(Malformed::Long(0)));
        let mut most = [0xff; 10];
        most[9] = 1;
        assert_eq!(Reader::new(&most).varint(), Ok(u64::MAX));
        most[9] = 2;
        assert_eq!(Reader::new(&most).varint(), Err(Malformed::Long(0)));
        assert_eq!(Reader::new(&[5, 1]).blob(), Err(Malformed::Short(2)));
    }
}
