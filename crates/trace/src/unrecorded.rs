//! Places that are executed with segments, touch memory and are not recorded (SPEC §2.6).

use crate::LeftOut;
use crate::bytes::{Malformed, Reader};
use crate::format::table_section;
use crate::sections::Sections;
use crate::sites::{FunctionId, LocationId, SiteTable, StringId};

/// A place, as indices of a table's locations and strings: `left_out.*`, where it stands, and the
/// linkage name of the function that is called, if it is a call.
pub(crate) type TablePlace = (u8, Option<u32>, Option<u32>);

/// The section of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TableUnrecorded {
    /// Places, each with its segment, in the order of the section.
    pub places: Vec<(u32, TablePlace)>,
    /// Linkage names of functions of the unit without segments.
    pub silent: Vec<u32>,
}

/// Returns the section of a table with these numbers of segments, locations and strings.
pub(crate) fn read(
    sections: &Sections<'_>,
    [segments, locations, strings]: [usize; 3],
) -> Result<TableUnrecorded, Malformed> {
    let mut found = TableUnrecorded::default();
    let Some(mut section) = sections.get(table_section::UNRECORDED) else { return Ok(found) };
    let place = |reader: &mut Reader<'_>| {
        Ok((reader.u8()?, reader.optional_index(locations)?, reader.optional_index(strings)?))
    };
    for _ in 0..section.count()? {
        let segment = section.index(segments)?;
        for _ in 0..section.count()? {
            found.places.push((segment, place(&mut section)?));
        }
    }
    for _ in 0..section.count()? {
        found.silent.push(section.index(strings)?);
    }
    Ok(found)
}

/// A place in the code that touches memory and is not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unrecorded {
    /// The reason why it is not recorded.
    pub reason: LeftOut,
    /// The function whose code holds it.
    pub function: FunctionId,
    /// The place in the source, if that is known.
    pub location: Option<LocationId>,
    /// The linkage name of the function that a call enters.
    pub callee: Option<StringId>,
}

/// The places that are executed as often as some segment is, by a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnrecordedId(pub u32);

impl SiteTable {
    /// Returns the places that an execution of a segment with this number stands for. A call of a
    /// function that another unit records does not count.
    pub fn unrecorded(&self, id: UnrecordedId) -> impl Iterator<Item = &Unrecorded> {
        let places = self.unrecorded.get(id.0 as usize).map_or(&[][..], Vec::as_slice);
        let is_elsewhere = |place: &&Unrecorded| {
            place.reason != LeftOut::Call || place.callee.is_none_or(|name| !self.compiled.contains(&name))
        };
        places.iter().filter(is_elsewhere)
    }

    /// Reasons whose places belong to segments, so the number of their executions is known.
    pub fn counted(&self) -> impl Iterator<Item = LeftOut> {
        self.unrecorded.iter().flatten().map(|place| place.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::left_out;
    use crate::sections::put_sections;

    fn section(contents: Vec<u8>) -> Result<TableUnrecorded, Malformed> {
        let mut bytes = Vec::new();
        put_sections(&mut bytes, &[(table_section::UNRECORDED, contents)]);
        read(&Sections::read(&mut Reader::new(&bytes))?, [3, 2, 2])
    }

    #[test]
    fn places_have_a_segment_and_functions_a_name() {
        let found = section(vec![1, 2, 2, left_out::CALL, 1, 2, left_out::ASSEMBLY, 0, 0, 1, 1]).unwrap();
        let places = vec![(2, (left_out::CALL, Some(0), Some(1))), (2, (left_out::ASSEMBLY, None, None))];
        assert_eq!(found, TableUnrecorded { places, silent: vec![1] });
        assert!(section(vec![1, 3, 1, 9, 0, 0, 0]).is_err(), "no such segment");
        assert!(section(vec![1, 0, 1, 9, 3, 0, 0]).is_err(), "no such location");
        assert!(section(vec![1, 0, 1, 9, 0, 3, 0]).is_err(), "no such string");
        assert!(section(vec![0, 1, 2]).is_err(), "no such name");
        assert!(section(vec![0]).is_err(), "no names");
    }

    #[test]
    fn a_call_of_what_is_compiled_is_none() {
        let place = |reason, callee: Option<u32>| Unrecorded {
            reason,
            function: FunctionId(0),
            location: None,
            callee: callee.map(StringId),
        };
        let all = vec![
            place(LeftOut::Call, Some(0)),
            place(LeftOut::Call, Some(1)),
            place(LeftOut::Assembly, None),
            place(LeftOut::Function, Some(0)),
        ];
        let names = SiteTable {
            unrecorded: vec![all.clone()],
            compiled: [StringId(0)].into_iter().collect(),
            ..SiteTable::default()
        };
        let found: Vec<_> = names.unrecorded(UnrecordedId(0)).copied().collect();
        assert_eq!(found, all[1..]);
        assert_eq!(names.unrecorded(UnrecordedId(1)).count(), 0);
    }
}
