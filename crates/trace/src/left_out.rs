//! Code of a program that touches memory and was compiled without a record of it (SPEC §2.1).

use std::collections::BTreeMap;

use crate::bytes::Malformed;
use crate::format::{left_out, table_section};
use crate::sections::Sections;

/// Why something that touches memory is not recorded (`left_out.*` of the format).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftOut {
    /// Inline assembly may touch more than its operands.
    Assembly,
    /// The write side of a by-value argument's copy.
    ByValue,
    /// Another address space: `%fs` and `%gs` on x86.
    AddressSpace,
    /// A vector of more than 64 lanes under a mask, or of unknown length.
    Vector,
    /// An operation of the processor that the compiler plug-in does not know.
    Intrinsic,
    /// An assembly that jumps.
    AssemblyJump,
    /// An object that a library function looked at, behind a call with nothing behind it.
    TailCall,
    /// A whole function.
    Function,
    /// The user's filter.
    Filter,
    /// A function of another unit, or of code that was not compiled with memlode.
    Call,
}

impl LeftOut {
    /// From `left_out.*` of the format.
    pub fn from_format(value: u8) -> Option<LeftOut> {
        Some(match value {
            left_out::ASSEMBLY => LeftOut::Assembly,
            left_out::BY_VALUE => LeftOut::ByValue,
            left_out::ADDRESS_SPACE => LeftOut::AddressSpace,
            left_out::VECTOR => LeftOut::Vector,
            left_out::INTRINSIC => LeftOut::Intrinsic,
            left_out::ASSEMBLY_JUMP => LeftOut::AssemblyJump,
            left_out::TAIL_CALL => LeftOut::TailCall,
            left_out::FUNCTION => LeftOut::Function,
            left_out::FILTER => LeftOut::Filter,
            left_out::CALL => LeftOut::Call,
            _ => return None,
        })
    }
}

/// Returns how many places of a unit's code are left out, by reason. Reasons that were added later
/// are skipped.
pub(crate) fn read(sections: &Sections<'_>) -> Result<BTreeMap<LeftOut, u64>, Malformed> {
    let mut found = BTreeMap::new();
    if let Some(mut section) = sections.get(table_section::LEFT_OUT) {
        for _ in 0..section.varint()? {
            let reason = LeftOut::from_format(section.u8()?);
            let count = section.varint()?;
            found.extend(reason.map(|reason| (reason, count)));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Reader;
    use crate::sections::put_sections;

    fn read_section(contents: Vec<u8>) -> Result<BTreeMap<LeftOut, u64>, Malformed> {
        let mut bytes = Vec::new();
        put_sections(&mut bytes, &[(table_section::LEFT_OUT, contents)]);
        read(&Sections::read(&mut Reader::new(&bytes))?)
    }

    #[test]
    fn reasons_are_counted_and_new_ones_skipped() {
        let found = read_section(vec![3, left_out::ASSEMBLY, 5, 200, 9, left_out::FILTER, 0x81, 1]).unwrap();
        assert_eq!(found, BTreeMap::from([(LeftOut::Assembly, 5), (LeftOut::Filter, 129)]));
        assert!(read(&Sections::default()).unwrap().is_empty());
    }

    #[test]
    fn a_section_that_promises_more_than_it_holds_is_refused() {
        assert!(read_section(vec![2, left_out::ASSEMBLY, 5]).is_err());
        assert!(read_section(vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]).is_err());
    }
}
