//! The object index against a list that is searched from end to end.

use memlode_attribute::ClassId;
use memlode_attribute::objects::{LARGE, Objects};
use proptest::prelude::*;

/// The rules in their simplest form: a new block ends those it overlaps, but a small one leaves a
/// live large one around it alone.
#[derive(Default)]
struct Naive {
    blocks: Vec<(u64, u64, ClassId, bool)>,
}

impl Naive {
    fn insert(&mut self, base: u64, bytes: u64, class: ClassId) {
        self.blocks.retain(|&(b, n, _, live)| {
            let overlaps = b < base + bytes && base < b + n;
            let around = n >= LARGE && live && bytes < LARGE && b <= base && base + bytes <= b + n;
            !overlaps || around
        });
        self.blocks.push((base, bytes, class, true));
    }

    fn free(&mut self, base: u64) {
        let found = self.place_of(base).filter(|&i| self.blocks[i].0 == base);
        if let Some(i) = found {
            self.blocks[i].3 = false;
        }
    }

    /// The small block that holds an address, else the large one.
    fn place_of(&self, address: u64) -> Option<usize> {
        let holds = |&i: &usize| {
            let (base, bytes, ..) = self.blocks[i];
            base <= address && address < base + bytes
        };
        (0..self.blocks.len()).filter(holds).min_by_key(|&i| self.blocks[i].1)
    }

    fn find(&self, address: u64) -> Option<ClassId> {
        self.place_of(address).map(|i| self.blocks[i].2)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u64),
    Free(usize),
    Find(u64),
}

fn step() -> impl Strategy<Value = Step> {
    // Few pages, so that blocks meet; sizes on both sides of a page and of `LARGE`.
    let base = (0u64..1 << 15).prop_map(|granule| 0x7000_0000 + granule * 8);
    let bytes = prop_oneof![8 => 1u64..200, 3 => 200u64..10_000, 1 => LARGE - 8..LARGE * 3];
    prop_oneof![
        4 => (base, bytes).prop_map(|(base, bytes)| Step::Insert(base, bytes)),
        1 => any::<usize>().prop_map(Step::Free),
        6 => (0u64..1 << 18).prop_map(|offset| Step::Find(0x7000_0000 + offset)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn agrees_with_a_list(steps in prop::collection::vec(step(), 1..400)) {
        let (mut objects, mut naive) = (Objects::default(), Naive::default());
        let mut bases = Vec::new();
        for (i, step) in steps.iter().enumerate() {
            match *step {
                Step::Insert(base, bytes) => {
                    let class = ClassId(i as u32 + 1);
                    objects.insert(base, bytes, class);
                    naive.insert(base, bytes, class);
                    bases.push(base);
                }
                Step::Free(which) if !bases.is_empty() => {
                    let base = bases[which % bases.len()];
                    objects.free(base);
                    naive.free(base);
                }
                Step::Free(_) => {}
                Step::Find(address) => {
                    let found = objects.find(address);
                    prop_assert_eq!(objects.slot_at(address), found, "at {:#x}", address);
                    let class = found.map(|slot| objects.class(slot));
                    prop_assert_eq!(class, naive.find(address), "at {:#x}", address);
                    // What allocators round up to counts as the block's, if nobody else has a part of it.
                    let eight = (address & !7..=address | 7).filter_map(|at| naive.find(at));
                    let mut others = eight.collect::<Vec<_>>();
                    others.dedup();
                    let class = class.or(others.pop().filter(|_| others.is_empty()));
                    prop_assert_eq!(objects.class_at(address), class, "at {:#x}, by granule", address);
                }
            }
        }
    }
}

#[test]
fn a_pool_carves_its_blocks_out_of_a_live_one() {
    let mut objects = Objects::default();
    objects.insert(0x10000, 0x40000, ClassId(1));
    objects.insert(0x20000, 64, ClassId(2));
    let class = |objects: &Objects, at| objects.find(at).map(|slot| objects.class(slot));
    assert_eq!(class(&objects, 0x20010), Some(ClassId(2)));
    assert_eq!(class(&objects, 0x20040), Some(ClassId(1)));
    // Once the large block is dead, whatever takes its place ends it.
    objects.free(0x10000);
    objects.insert(0x30000, 64, ClassId(3));
    assert_eq!(class(&objects, 0x20040), None);
    assert_eq!(class(&objects, 0x20010), Some(ClassId(2)));
}

#[test]
fn adjacent_small_globals_stay_apart() {
    let mut objects = Objects::default();
    objects.insert_global(0x4000, 4, ClassId(1));
    objects.insert_global(0x4004, 1, ClassId(2));
    objects.insert_global(0x4005, 1, ClassId(3));
    let classes: Vec<_> = (0x4003..0x4007).map(|at| objects.find(at).map(|s| objects.class(s))).collect();
    assert_eq!(classes, [Some(ClassId(1)), Some(ClassId(2)), Some(ClassId(3)), None]);
}

#[test]
fn the_last_address_and_empty_blocks_do_no_harm() {
    let mut objects = Objects::default();
    assert!(objects.insert(u64::MAX - 8, 100, ClassId(1)).is_none());
    assert!(objects.insert(0x1000, 0, ClassId(1)).is_none());
    objects.insert(0, 1 << 47, ClassId(1));
    objects.unmap(0, u64::MAX);
    assert!(objects.find(u64::MAX).is_none());
    assert!(objects.find(5).is_some());
}
