//! Calls that a map receives for an object.

use std::sync::Mutex;

use memlode_trace::sites::TypeId;

use super::*;

/// An object as a map receives it: allocation, base, bytes, bytes of an element.
type Told = (Option<u64>, u64, u64, Option<u64>);

/// Records its calls, and moves nothing.
#[derive(Default)]
struct Asked(Mutex<Vec<Told>>);

impl AddressMap for Asked {
    fn moves(&self, object: &ObjectRef<'_>) -> bool {
        let &ObjectRef { allocation, base, bytes, element_bytes, .. } = object;
        self.0.lock().unwrap().push((allocation, base, bytes, element_bytes));
        false
    }

    fn map(&self, _: &ObjectRef<'_>, _: u64, _: u32, _: &mut Vec<MappedPiece>) {
        unreachable!("no object moves");
    }

    fn stride(&self, _: &ObjectRef<'_>, _: u64, _: u32, _: u64, _: u64) -> Option<u64> {
        unreachable!("no object moves");
    }
}

/// An object consists of whole elements of its type, or else of the size passed to the allocator;
/// blocks have numbers, globals have none.
#[test]
fn objects_have_elements() {
    let mut sites = sites();
    sites[3].ty = Some(TypeId(1));
    let alloc = |base, count, element_bytes| Mark::Alloc { site: SiteId(3), base, count, element_bytes };
    let resized = Mark::Realloc { site: SiteId(3), base: 0x5000, bytes: 480, old: 0x1000 };
    let failed = alloc(0, 1, 48);
    let marks = [alloc(0x1000, 1, 240), failed, alloc(0x2000, 1, 100), alloc(0x3000, 25, 4), resized];
    let batch = Batch {
        process: Some(ProcessId(0)),
        thread: Some(ThreadId(0)),
        marks: marks.map(|mark| (0, mark)).to_vec(),
        accesses: vec![Access { address: 0x9810, bytes: 8, site: SiteId(0) }; 2],
        ..Batch::default()
    };
    let asked = Asked::default();
    let mut profiler = Profiler::new(&sites, hierarchy());
    let global = LoadedGlobal { address: 0x9800, bytes: 64, symbol: "table".into(), image: "a".into() };
    profiler.add_globals(ProcessId(0), [global]);
    profiler.observe_piece_by(&mut Mapped::new(&asked, vec![8, 48]), &Run::whole(&batch));
    let expected = [
        (Some(0), 0x1000, 240, Some(48)),
        (Some(1), 0x2000, 100, None),
        (Some(2), 0x3000, 100, Some(4)),
        (Some(3), 0x5000, 480, Some(48)),
        (None, 0x9800, 64, None),
    ];
    assert_eq!(asked.0.into_inner().unwrap(), expected);
}
