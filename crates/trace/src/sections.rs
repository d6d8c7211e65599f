//! The parts of a table, a module file or a chunk that a reader may skip (SPEC §5.1).

use crate::bytes::{Malformed, Reader, put_blob, put_varint};

/// The sections of one object, each with its contents (`table_section.*`, `module_section.*`,
/// `chunk_section.*` of the format).
#[derive(Clone, Debug, Default)]
pub(crate) struct Sections<'a>(Vec<(u32, &'a [u8])>);

impl<'a> Sections<'a> {
    /// Reads the length of all, and then each of them.
    pub fn read(reader: &mut Reader<'a>) -> Result<Sections<'a>, Malformed> {
        let mut reader = Reader::new(reader.blob()?);
        let mut sections = Vec::new();
        while reader.left() > 0 {
            sections.push((reader.u32()?, reader.blob()?));
        }
        Ok(Sections(sections))
    }

    /// The contents of a section, if it is there. Bytes behind those that the caller knows were
    /// added by a later version.
    pub fn get(&self, what: u32) -> Option<Reader<'a>> {
        self.0.iter().find(|(id, _)| *id == what).map(|(_, bytes)| Reader::new(bytes))
    }
}

/// Writes sections as [`Sections::read`] reads them.
pub(crate) fn put_sections(out: &mut Vec<u8>, sections: &[(u32, Vec<u8>)]) {
    let mut all = Vec::new();
    for (what, bytes) in sections {
        put_varint(&mut all, u64::from(*what));
        put_blob(&mut all, bytes);
    }
    put_blob(out, &all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_found_among_unknown_ones() {
        let mut bytes = Vec::new();
        put_sections(&mut bytes, &[(9, vec![1, 2, 3]), (300, Vec::new()), (7, vec![4])]);
        bytes.push(0xee); // what follows is somebody else's
        let mut reader = Reader::new(&bytes);
        let sections = Sections::read(&mut reader).unwrap();
        assert_eq!(reader.left(), 1);
        assert_eq!(sections.get(7).unwrap().take(1), Ok(&[4][..]));
        assert_eq!(sections.get(300).unwrap().left(), 0);
        assert!(sections.get(8).is_none());
    }

    #[test]
    fn sections_that_promise_more_than_there_is_are_refused() {
        assert_eq!(Sections::read(&mut Reader::new(&[3, 1])).unwrap_err(), Malformed::Short(2));
        assert_eq!(Sections::read(&mut Reader::new(&[2, 1, 5])).unwrap_err(), Malformed::Short(2));
        let long = [10, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0];
        assert!(matches!(Sections::read(&mut Reader::new(&long)), Err(Malformed::Beyond { .. })));
    }
}
