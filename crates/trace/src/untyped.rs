//! Functions that return memory of no type (SPEC §2.9).

use rustc_hash::{FxHashMap, FxHashSet};

use crate::bytes::Malformed;
use crate::format::table_section;
use crate::sections::Sections;
use crate::sites::{FunctionId, Location, Site, SiteKind, StringId, Type};

/// Returns those of a table with this number of functions.
pub(crate) fn read(sections: &Sections<'_>, functions: usize) -> Result<Vec<u32>, Malformed> {
    let Some(mut section) = sections.get(table_section::UNTYPED) else { return Ok(Vec::new()) };
    (0..section.count()?).map(|_| section.index(functions)).collect()
}

/// Returns the types that the text of each of these functions accesses. What they allocate of these
/// they do not only pass on.
pub(crate) fn accessed(
    untyped: &FxHashSet<FunctionId>,
    (sites, locations, types): (&[Site], &[Location], &[Type]),
) -> FxHashMap<FunctionId, FxHashSet<StringId>> {
    let mut found: FxHashMap<_, FxHashSet<_>> =
        untyped.iter().map(|id| (*id, FxHashSet::default())).collect();
    for site in sites.iter().filter(|site| !matches!(site.kind, SiteKind::Alloc | SiteKind::Free)) {
        let Some(ty) = site.ty else { continue };
        let function = site.location.map_or(site.function, |at| locations[at.0 as usize].function);
        if let Some(of) = found.get_mut(&function) {
            of.insert(types[ty.0 as usize].name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Reader;
    use crate::sections::put_sections;

    #[test]
    fn functions_are_those_of_the_table() {
        let of = |contents: Vec<u8>| {
            let mut bytes = Vec::new();
            put_sections(&mut bytes, &[(table_section::UNTYPED, contents)]);
            read(&Sections::read(&mut Reader::new(&bytes)).unwrap(), 3)
        };
        assert_eq!(of(vec![2, 0, 2]).unwrap(), [0, 2]);
        assert_eq!(of(vec![0]).unwrap(), [0; 0]);
        assert!(of(vec![1, 3]).is_err(), "no such function");
        assert!(of(vec![2, 0]).is_err(), "half of the list");
        assert!(of(vec![0xff, 0xff, 0xff, 0xff, 0x0f]).is_err(), "more than the section has");
    }
}
