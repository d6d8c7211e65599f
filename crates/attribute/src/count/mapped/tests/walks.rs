//! Walks of sites under an edit, against a look at the trace as a naive program rewrites it.

use memlode_replay::{Walk, Walks};

use super::*;

/// Returns the walks of chunks by site, without a profiler.
fn seen(chunks: &[Chunk]) -> Vec<Walk> {
    let mut all = vec![Walk::default(); sites().len()];
    let mut walks = Walks::default();
    for (sequence, chunk) in chunks.iter().enumerate() {
        for (site, walk) in walks.of(&batch(sequence, chunk, false)) {
            all[site.0 as usize].add(walk);
        }
    }
    all
}

fn under(chunks: &[Chunk], edit: &Edit) -> Vec<Walk> {
    let mut walks = profile(hierarchy(), chunks, Some(edit)).0.walks;
    walks.resize(sites().len(), Walk::default());
    walks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn identity_changes_no_walk(chunks in chunks()) {
        let same = Edit { element: 16, how: How::Same };
        let [near, far] = [|walk: &Walk| walk.near, |walk: &Walk| walk.far];
        let sum = |walks: &[Walk], of: fn(&Walk) -> u64| walks.iter().map(of).sum::<u64>();
        let (mapped, straight) = (under(&chunks, &same), seen(&chunks));
        // A loop that leaves its object may be looked at by itself, whose last line may be one more.
        let loops = chunks.iter().flat_map(|chunk| &chunk.2);
        let loops = 4 * loops.filter(|event| matches!(event, Event::Loop(..))).count() as u64;
        for of in [near, far] {
            prop_assert!(sum(&mapped, of).abs_diff(sum(&straight, of)) <= loops);
        }
    }

    #[test]
    fn sites_walk_where_the_data_are_put(chunks in chunks(), edit in edit()) {
        let mut chunks = chunks;
        chunks.iter_mut().for_each(|chunk| chunk.2.retain(|event| !matches!(event, Event::Loop(..))));
        let (kept, moved) = rewritten(&chunks, &edit);
        prop_assert_eq!(under(&kept, &edit), seen(&moved));
    }
}
