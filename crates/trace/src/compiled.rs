//! Files that were compiled, and where (SPEC §2.7).

use std::collections::{BTreeMap, BTreeSet};

use crate::bytes::Malformed;
use crate::format::table_section;
use crate::sections::Sections;
use crate::sites::StringId;

/// Bytes of an MD5.
const MD5: usize = 16;

/// The section of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableSources {
    /// The compiler's working directory, a string.
    pub directory: Option<u32>,
    /// Files of the table with the MD5 of the compiled sources.
    pub checksums: Vec<(u32, [u8; MD5])>,
}

/// Returns the section of a table with these numbers of strings and files.
pub(crate) fn read(sections: &Sections<'_>, [strings, files]: [usize; 2]) -> Result<TableSources, Malformed> {
    let Some(mut section) = sections.get(table_section::SOURCES) else { return Ok(TableSources::default()) };
    let directory = section.optional_index(strings)?;
    let mut checksums = Vec::new();
    for _ in 0..section.count()? {
        let file = section.index(files)?;
        let mut checksum = [0; MD5];
        checksum.copy_from_slice(section.take(MD5)?);
        checksums.push((file, checksum));
    }
    Ok(TableSources { directory, checksums })
}

/// Facts by which a file is known to be one that was compiled.
#[derive(Clone, Debug, Default)]
pub struct CompiledSources {
    /// The MD5 of each text that was compiled, by directory and name.
    pub checksums: BTreeMap<(StringId, StringId), BTreeSet<[u8; MD5]>>,
    /// Directories that the compiler worked in.
    pub directories: BTreeSet<StringId>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Reader;
    use crate::sections::put_sections;

    fn section(contents: Vec<u8>) -> Result<TableSources, Malformed> {
        let mut bytes = Vec::new();
        put_sections(&mut bytes, &[(table_section::SOURCES, contents)]);
        read(&Sections::read(&mut Reader::new(&bytes))?, [3, 2])
    }

    #[test]
    fn a_checksum_belongs_to_a_file_of_the_table() {
        let sum = [7; MD5];
        let found = section([&[3, 1, 1][..], &sum].concat()).unwrap();
        assert_eq!(found, TableSources { directory: Some(2), checksums: vec![(1, sum)] });
        assert_eq!(section(vec![0, 0]).unwrap(), TableSources::default());
        assert!(section(vec![4, 0]).is_err(), "no such string");
        assert!(section([&[0, 1, 2][..], &sum].concat()).is_err(), "no such file");
        assert!(section([&[0, 2, 1][..], &sum].concat()).is_err(), "half of the list");
        assert!(section([&[0, 1, 1][..], &sum[1..]].concat()).is_err(), "half a checksum");
    }
}
