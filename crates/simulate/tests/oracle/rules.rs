//! Random rules for random hierarchies, and walks for prefetchers to follow.

use crate::common::Access;
use memlode_simulate::{
    Coherence, Inclusion, LevelSpec, ModelLevel, ModelSpec, Prefetch, Replacement, Write,
};
use proptest::prelude::*;

/// Rules for a level: replacement, inclusion, write-through, write-allocate, sectors of a line as a
/// power of two, and a bit for each prefetcher.
pub type Rules = (u8, u8, bool, bool, u32, u8);

/// `prefetchers`: bits of those that are allowed; half of the time there are none.
pub fn rules(prefetchers: u8) -> impl Strategy<Value = Vec<Rules>> {
    let prefetch =
        (any::<bool>(), any::<u8>()).prop_map(move |(any, bits)| if any { bits & prefetchers } else { 0 });
    let inclusion = prop_oneof![Just(0u8), Just(1), Just(2), Just(2)];
    let through = prop::bool::weighted(0.25);
    let allocate = prop::bool::weighted(0.75);
    prop::collection::vec((0u8..6, inclusion, through, allocate, 0u32..5, prefetch), 4)
}

/// Accesses of a few sites, each with a stride or, without one, at random addresses nearby: the
/// patterns that prefetchers are made for.
pub fn walks(cores: u32) -> impl Strategy<Value = Vec<(Access, u32)>> {
    let site = (0..cores as usize, 0u64..4, prop_oneof![-40i64..40, -300i64..300], any::<bool>());
    let picks = prop::collection::vec((any::<prop::sample::Index>(), 0u64..2048), 1..500);
    (prop::collection::vec(site, 1..4), picks).prop_map(|(mut sites, picks)| {
        let mut at: Vec<u64> = sites.iter().map(|site| 0x7000_0000 + site.1 * 1024).collect();
        let access = |(pick, near): (prop::sample::Index, u64)| {
            let tag = pick.index(at.len());
            let (core, _, stride, write) = &mut sites[tag];
            at[tag] = if *stride == 0 { 0x7000_0000 + near } else { at[tag].wrapping_add_signed(*stride) };
            (Access { core: *core, address: at[tag], bytes: 6, write: *write }, tag as u32)
        };
        picks.into_iter().map(access).collect()
    })
}

/// The levels with these rules, or the nearest that can exist.
pub fn spec(shapes: &[LevelSpec], cores: u32, rules: &[Rules], mesi: bool) -> ModelSpec {
    let mut levels: Vec<ModelLevel> = Vec::new();
    for (shape, (replacement, inclusion, through, write_allocate, sectors, prefetch)) in
        shapes.iter().zip(rules)
    {
        let replacement = match replacement {
            0 => Replacement::Srrip,
            1 => Replacement::Brrip,
            2 => Replacement::Fifo,
            3 => Replacement::Random,
            4 if shape.ways.is_power_of_two() => Replacement::TreePlru,
            _ => Replacement::Lru,
        };
        let sector = shape.line_bytes >> sectors;
        let mut level = ModelLevel {
            replacement,
            write: if *through { Write::Through } else { Write::Back },
            write_allocate: *write_allocate,
            sector_bytes: (*sectors > 0 && sector > 0).then_some(sector),
            ..ModelLevel::from(*shape)
        };
        if let Some(inner) = levels.last() {
            if *inclusion == 1 {
                level.inclusion = Inclusion::Inclusive;
            } else if *inclusion == 2 && inner.shape.line_bytes == shape.line_bytes {
                level.inclusion = Inclusion::Exclusive;
                level.sector_bytes = inner.sector_bytes;
            }
        }
        if level.inclusion != Inclusion::Exclusive {
            let kinds = [Prefetch::NextLine, Prefetch::AdjacentLine, Prefetch::Stride, Prefetch::Stream];
            level.prefetch = (0..4).filter(|bit| prefetch >> bit & 1 != 0).map(|bit| kinds[bit]).collect();
        }
        levels.push(level);
    }
    let coherence = if mesi { Coherence::Mesi } else { Coherence::None };
    ModelSpec { coherence, fill_accesses: 5, ..ModelSpec::new(levels, cores) }
}
