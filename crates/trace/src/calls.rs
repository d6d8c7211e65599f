//! The calls that functions are entered by (SPEC §2.5).

use serde::{Deserialize, Serialize};

use crate::bytes::{Malformed, Reader};
use crate::format::table_section;
use crate::sections::Sections;
use crate::sites::{FunctionId, LocationId, SiteTable, StringId};

/// A call, as indices of a table's locations and strings: where it stands, the linkage name of the
/// function that is called, none of an indirect call, and `call_flag.*`.
pub(crate) type TableCall = (Option<u32>, Option<u32>, u8);

/// Returns the calls behind the segments of a table with these numbers of segments, locations and
/// strings.
pub(crate) fn read(
    sections: &Sections<'_>,
    [segments, locations, strings]: [usize; 3],
) -> Result<Vec<Vec<TableCall>>, Malformed> {
    let Some(mut section) = sections.get(table_section::CALLS) else { return Ok(Vec::new()) };
    let call = |reader: &mut Reader<'_>| {
        Ok((reader.optional_index(locations)?, reader.optional_index(strings)?, reader.u8()?))
    };
    let mut found = vec![Vec::new(); segments];
    for _ in 0..section.count()? {
        let segment = section.index(segments)? as usize;
        for _ in 0..section.count()? {
            found[segment].push(call(&mut section)?);
        }
    }
    Ok(found)
}

/// A call that may come behind a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    /// Its place, if it returns.
    pub location: Option<LocationId>,
    /// The function, unless it is called indirectly.
    pub callee: Option<StringId>,
    /// It enters the function that it names, or none.
    pub is_exact: bool,
}

/// The segment that a thread executed before it entered a function, as far as it determines the
/// call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller(u32);

impl Caller {
    /// A segment behind which there is no call, or of which it is not known.
    pub const UNKNOWN: Caller = Caller(0);
    /// A function was left: use the segment that its caller executed before the call.
    pub const RETURNED: Caller = Caller(u32::MAX);
    /// No segment in this chunk yet: use the last one of the chunk before.
    pub const BEFORE: Caller = Caller(u32::MAX - 1);

    /// A segment with the calls of this index.
    pub(crate) fn new(index: u32) -> Caller {
        Caller(index + 1)
    }
}

impl SiteTable {
    /// Returns whether a call behind a segment names a function.
    pub fn calls_by_name(&self, caller: Caller, callee: FunctionId) -> bool {
        let name = self.function(callee).linkage_name;
        let calls = caller.0.checked_sub(1).and_then(|index| self.calls.get(index as usize));
        calls.is_some_and(|calls| calls.iter().any(|call| call.callee == Some(name)))
    }

    /// Returns where a function was called that was entered behind a segment, if that is known.
    pub fn call_of(&self, caller: Caller, callee: FunctionId) -> Option<LocationId> {
        let calls = self.calls.get(caller.0.checked_sub(1)? as usize)?;
        let name = self.function(callee).linkage_name;
        let by_name = |call: &Call| call.callee == Some(name);
        let is_named = calls.iter().any(by_name);
        // What is called indirectly may be the same function.
        let is_possible = |call: &&Call| match is_named {
            true => by_name(call) || (call.callee.is_none() && call.location.is_some()),
            false => !call.is_exact,
        };
        let mut found = calls.iter().filter(is_possible);
        let location = found.next()?.location?;
        found.all(|call| call.location == Some(location)).then_some(location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::put_sections;
    use crate::sites::Function;

    fn section(contents: Vec<u8>) -> Result<Vec<Vec<TableCall>>, Malformed> {
        let mut bytes = Vec::new();
        put_sections(&mut bytes, &[(table_section::CALLS, contents)]);
        read(&Sections::read(&mut Reader::new(&bytes))?, [3, 2, 2])
    }

    #[test]
    fn segments_have_the_calls_that_the_section_lists() {
        let found = section(vec![2, 1, 2, 1, 2, 0, 0, 0, 1, 2, 1, 2, 0, 0]).unwrap();
        assert_eq!(found, [vec![], vec![(Some(0), Some(1), 0), (None, None, 1)], vec![(Some(1), None, 0)]]);
        assert!(section(vec![1, 3, 1, 1, 1, 0]).is_err(), "no such segment");
        assert!(section(vec![1, 0, 1, 3, 0, 0]).is_err(), "no such location");
        assert!(section(vec![1, 0, 1, 0, 3, 0]).is_err(), "no such string");
        assert!(section(vec![1, 0, 2, 0, 0, 0]).is_err(), "one call is missing");
    }

    #[test]
    fn a_call_is_found_by_name_or_because_it_is_the_only_one() {
        let [f, g, other, exact] = [0, 1, 2, 3].map(StringId);
        let function = |linkage_name| Function { name: linkage_name, linkage_name, file: None, line: 0 };
        let call = |location: Option<u32>, callee| Call {
            location: location.map(LocationId),
            callee,
            is_exact: callee == Some(exact),
        };
        let names = SiteTable {
            functions: vec![function(f), function(g)],
            calls: vec![
                vec![call(Some(1), Some(f)), call(Some(2), Some(g)), call(Some(3), Some(exact))],
                vec![call(Some(1), Some(f)), call(Some(2), Some(f)), call(Some(3), Some(g))],
                vec![call(Some(4), Some(other))],
                vec![call(Some(4), Some(other)), call(None, None)],
                vec![call(Some(5), None), call(Some(5), Some(other)), call(Some(6), Some(exact))],
                vec![call(Some(7), None), call(Some(8), Some(f))],
                vec![call(Some(7), None), call(Some(8), Some(exact))],
            ],
            ..SiteTable::default()
        };
        let found = |calls, callee| names.call_of(calls, FunctionId(callee)).map(|found| found.0);
        assert_eq!([found(Caller::new(0), 0), found(Caller::new(0), 1)], [Some(1), Some(2)]);
        assert_eq!([found(Caller::new(1), 0), found(Caller::new(1), 1)], [None, Some(3)], "two of f's");
        assert_eq!(found(Caller::new(2), 0), Some(4), "whatever it called calls f");
        assert_eq!(found(Caller::new(3), 0), None, "or what does not return");
        assert_eq!(found(Caller::new(4), 0), Some(5), "both stand there");
        assert_eq!([found(Caller::new(5), 0), found(Caller::new(5), 1)], [None, None], "by either");
        assert_eq!(found(Caller::new(6), 0), Some(7));
        let not_known = [Caller::UNKNOWN, Caller::RETURNED, Caller::BEFORE, Caller::new(7)];
        assert_eq!(not_known.map(|caller| found(caller, 0)), [None; 4]);
    }
}
