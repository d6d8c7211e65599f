//! Functions of an image that memlode did not compile (SPEC §4.2).

use crate::bytes::{Malformed, put_blob, put_varint};
use crate::format::{foreign_flag, module_section};
use crate::sections::Sections;

/// A function that memlode did not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignFunction {
    /// Symbol, mangled.
    pub name: String,
    /// Length of its code.
    pub bytes: u64,
    /// Known in its own unit alone: a function of another unit may have the name, too.
    pub is_local: bool,
}

/// Code of an image that memlode did not compile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignCode {
    /// The functions, longest first.
    pub functions: Vec<ForeignFunction>,
    /// The image is a program that is linked statically with a C library that this machine does not have, which is therefore
    /// among the functions.
    pub has_libraries: bool,
}

/// Returns the section that holds functions, if there are any.
pub(crate) fn section(code: &ForeignCode) -> Option<(u32, Vec<u8>)> {
    let mut out = vec![if code.has_libraries { foreign_flag::LIBRARIES } else { 0 }];
    put_varint(&mut out, code.functions.len() as u64);
    for function in &code.functions {
        out.push(if function.is_local { foreign_flag::LOCAL } else { 0 });
        put_blob(&mut out, function.name.as_bytes());
        put_varint(&mut out, function.bytes);
    }
    (!code.functions.is_empty()).then_some((module_section::FOREIGN, out))
}

/// Returns the functions that sections hold, in their order.
pub(crate) fn read(sections: &Sections<'_>) -> Result<ForeignCode, Malformed> {
    let Some(mut section) = sections.get(module_section::FOREIGN) else { return Ok(ForeignCode::default()) };
    let has_libraries = section.u8()? & foreign_flag::LIBRARIES != 0;
    let count = section.count()?;
    let mut functions = Vec::new();
    for _ in 0..count {
        let is_local = section.u8()? & foreign_flag::LOCAL != 0;
        let name = String::from_utf8_lossy(section.blob()?).into_owned();
        functions.push(ForeignFunction { name, bytes: section.varint()?, is_local });
    }
    Ok(ForeignCode { functions, has_libraries })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Reader;
    use crate::sections::put_sections;

    #[test]
    fn what_is_written_is_read_and_a_part_of_it_is_refused() {
        let of = |name: &str, bytes, is_local| ForeignFunction { name: name.to_owned(), bytes, is_local };
        let functions = vec![of("grind", 300, false), of("h\u{fc}lle", 7, true), of("", u64::MAX, false)];
        let code = ForeignCode { functions, has_libraries: true };
        let (what, contents) = section(&code).unwrap();
        let read_from = |contents: &[u8]| {
            let mut bytes = Vec::new();
            put_sections(&mut bytes, &[(what, contents.to_vec())]);
            read(&Sections::read(&mut Reader::new(&bytes)).unwrap())
        };
        assert_eq!(read_from(&contents).unwrap(), code);
        for cut in 0..contents.len() {
            assert!(read_from(&contents[..cut]).is_err(), "{cut} bytes");
        }
        assert_eq!(section(&ForeignCode::default()), None);
        assert_eq!(read(&Sections::default()).unwrap(), ForeignCode::default());
    }
}
