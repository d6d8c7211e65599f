//! The user's wishes when a unit was compiled, and whether the unit has any of it (SPEC §2.1).

use crate::bytes::Malformed;
use crate::format::table_section;
use crate::sections::Sections;

/// A rule of a filter or the name of an allocator, as an index into the table's strings, and
/// whether it matched.
pub(crate) type Asked = (u32, bool);

/// Returns the rules and names of a table with `strings` strings.
pub(crate) fn read(sections: &Sections<'_>, strings: usize) -> Result<Vec<Asked>, Malformed> {
    let mut found = Vec::new();
    if let Some(mut section) = sections.get(table_section::ASKED) {
        for _ in 0..section.varint()? {
            found.push((section.index(strings)?, section.u8()? != 0));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Reader;
    use crate::sections::put_sections;

    fn read_section(contents: Vec<u8>) -> Result<Vec<Asked>, Malformed> {
        let mut bytes = Vec::new();
        put_sections(&mut bytes, &[(table_section::ASKED, contents)]);
        read(&Sections::read(&mut Reader::new(&bytes))?, 4)
    }

    #[test]
    fn entries_are_strings_and_an_answer() {
        assert_eq!(read_section(vec![2, 3, 0, 1, 1]).unwrap(), [(3, false), (1, true)]);
        assert!(read(&Sections::default(), 4).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_string_or_not_there_is_refused() {
        assert!(read_section(vec![1, 4, 0]).is_err());
        assert!(read_section(vec![2, 3, 0]).is_err());
        assert!(read_section(vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]).is_err());
    }
}
