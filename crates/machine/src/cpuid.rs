//! Caches as the processor itself describes them, for kernels that show none.

/// A data or unified cache from `cpuid`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuidCache {
    /// 1 is the innermost.
    pub level: u32,
    /// Bytes of one cache.
    pub bytes: u64,
    /// Lines in a set.
    pub ways: u32,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Most hardware threads that may share it.
    pub threads: u32,
}

/// Data and unified caches of the host processor, innermost first; empty if `cpuid` does not list
/// them.
#[cfg(target_arch = "x86_64")]
pub(crate) fn read() -> Vec<CpuidCache> {
    use raw_cpuid::{CacheType, CpuId};
    // Leaf 4 on Intel, leaf 0x8000_001d on AMD; the layout is the same and the library picks the leaf.
    let Some(parameters) = CpuId::new().get_cache_parameters() else { return Vec::new() };
    let holds_data = |kind| matches!(kind, CacheType::Data | CacheType::Unified);
    let mut caches: Vec<CpuidCache> = parameters
        .filter(|cache| holds_data(cache.cache_type()))
        .map(|cache| CpuidCache {
            level: cache.level().into(),
            bytes: (cache.sets() * cache.associativity()) as u64
                * (cache.coherency_line_size() * cache.physical_line_partitions()) as u64,
            ways: cache.associativity() as u32,
            line_bytes: cache.coherency_line_size() as u32,
            threads: cache.max_cores_for_cache() as u32,
        })
        .collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

/// Other processors have no such instruction.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn read() -> Vec<CpuidCache> {
    Vec::new()
}
