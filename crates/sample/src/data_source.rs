//! The source of a sample's data, as the kernel encodes it (`union perf_mem_data_src`).

use serde::Serialize;

/// The cache, or memory, that had the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataLevel {
    /// The first cache.
    L1,
    /// The first cache's fill buffers: the line was on its way.
    FillBuffer,
    /// The second cache.
    L2,
    /// The third cache.
    L3,
    /// The fourth cache, or memory's own.
    L4,
    /// Any cache, of another core or not.
    AnyCache,
    /// A cache of another socket.
    RemoteCache,
    /// Memory of the core's own node.
    Memory,
    /// Memory of another node.
    RemoteMemory,
    /// Memory that keeps its data without power.
    PersistentMemory,
    /// Memory behind a CXL link.
    Cxl,
    /// A device, or memory that is not cached.
    Uncached,
    /// The access missed the first cache; the processor gives no more detail.
    BehindL1,
    /// The processor does not give it.
    Unknown,
}

/// The facts of a sample's data source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct DataSource {
    /// The cache or memory.
    pub level: DataLevel,
    /// It was a store; else a load or a prefetch.
    pub is_store: bool,
    /// Another core had changed the line.
    pub is_modified: bool,
    /// Its address was in neither translation buffer.
    pub misses_tlb: bool,
    /// The access was locked.
    pub is_locked: bool,
    /// The load waited for an earlier store to an address that looked alike.
    pub is_blocked: bool,
}

impl DataSource {
    /// Reads the kernel's word. `None` if it has no source of an access's data.
    pub fn of(word: u64) -> Option<DataSource> {
        const LOAD: u64 = 2;
        const STORE: u64 = 4;
        const PREFETCH: u64 = 8;
        const SNOOP_HITM: u64 = 1 << 4;
        const LOCKED: u64 = 2;
        const TLB_MISS: u64 = 4;
        const BLOCKED_ADDRESS: u64 = 4;
        let bits = |from: u32, count: u32| word >> from & ((1 << count) - 1);
        let operation = bits(0, 5);
        if operation & (LOAD | STORE | PREFETCH) == 0 {
            return None;
        }
        Some(DataSource {
            level: numbered(bits(33, 4), bits(37, 1) != 0).unwrap_or_else(|| by_bits(bits(5, 14))),
            is_store: operation & STORE != 0,
            is_modified: bits(19, 5) & SNOOP_HITM != 0,
            misses_tlb: bits(26, 7) & TLB_MISS != 0,
            is_locked: bits(24, 2) & LOCKED != 0,
            is_blocked: bits(40, 3) & BLOCKED_ADDRESS != 0,
        })
    }
}

/// The level as kernels since 4.14 number it.
fn numbered(level: u64, is_remote: bool) -> Option<DataLevel> {
    Some(match (level, is_remote) {
        (1..=4 | 0xb, true) => DataLevel::RemoteCache,
        (0xd, true) => DataLevel::RemoteMemory,
        // 5 is a buffer beside the second cache.
        (1 | 7, _) => DataLevel::L1,
        (2 | 5, _) => DataLevel::L2,
        (3, _) => DataLevel::L3,
        (4 | 6, _) => DataLevel::L4,
        (8 | 0xa, _) => DataLevel::Uncached,
        (9, _) => DataLevel::Cxl,
        (0xb, _) => DataLevel::AnyCache,
        (0xc, _) => DataLevel::FillBuffer,
        (0xd, _) => DataLevel::Memory,
        (0xe, _) => DataLevel::PersistentMemory,
        _ => return None,
    })
}

/// The level as a set of bits, which all kernels have.
fn by_bits(level: u64) -> DataLevel {
    const MISS: u64 = 1 << 2;
    const LEVELS: [(u64, DataLevel); 11] = [
        (3, DataLevel::L1),
        (4, DataLevel::FillBuffer),
        (5, DataLevel::L2),
        (6, DataLevel::L3),
        (7, DataLevel::Memory),
        (8, DataLevel::RemoteMemory),
        (9, DataLevel::RemoteMemory),
        (10, DataLevel::RemoteCache),
        (11, DataLevel::RemoteCache),
        (12, DataLevel::Uncached),
        (13, DataLevel::Uncached),
    ];
    let known = LEVELS.iter().find(|(bit, _)| level >> bit & 1 != 0).map(|(_, level)| *level);
    match known {
        // Of a store Intel's older processors say no more than that.
        Some(DataLevel::L1) if level & MISS != 0 => DataLevel::BehindL1,
        Some(level) => level,
        None => DataLevel::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of real recordings, and what `perf script` prints of them.
    #[test]
    fn words_of_recordings() {
        let plain = DataSource {
            level: DataLevel::L1,
            is_store: false,
            is_modified: false,
            misses_tlb: false,
            is_locked: false,
            is_blocked: false,
        };
        let at = |level| DataSource { level, ..plain };
        for (word, expected) in [
            (0x6810_0142, Some(plain)),
            (0x6810_0242, Some(at(DataLevel::FillBuffer))),
            (0x6810_0442, Some(at(DataLevel::L2))),
            (0x6a10_0142, Some(DataSource { is_locked: true, ..plain })),
            (0x2_5210_0142, Some(DataSource { is_locked: true, misses_tlb: true, ..plain })),
            (0x6_6820_0842, Some(at(DataLevel::L3))),
            (0x6_2980_0842, Some(DataSource { is_modified: true, ..at(DataLevel::L3) })),
            (0x1a_6820_1042, Some(at(DataLevel::Memory))),
            (0x106_5010_0842, Some(DataSource { misses_tlb: true, ..at(DataLevel::L3) })),
            (0x402_6810_0142, Some(DataSource { is_blocked: true, ..plain })),
            (0x508_0144, Some(DataSource { is_store: true, ..plain })),
            (0x508_0184, Some(DataSource { is_store: true, ..at(DataLevel::BehindL1) })),
            (0x118_6810_0242, Some(at(DataLevel::FillBuffer))),
            // No access: what samples of other events have.
            (0x508_0021, None),
            (0x1e_0508_0021, None),
            (0, None),
        ] {
            assert_eq!(DataSource::of(word), expected, "{word:#x}");
        }
    }
}
