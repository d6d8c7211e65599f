//! Ratios and events in words: their names, what a high value means, and what to do next.

use memlode_counters::ratio::Ratio;
use memlode_counters::software::Software;

/// The words for a ratio.
pub struct RatioWords {
    /// Its name.
    pub name: &'static str,
    /// The heading of its column in a table of functions.
    pub column: &'static str,
    /// The formula where it is simulated; empty where a trace cannot give it.
    pub simulated: &'static str,
    /// The meaning of a high value.
    pub high: &'static str,
    /// The next step.
    pub next: &'static str,
}

/// Returns the words for a ratio.
pub fn words(ratio: Ratio) -> RatioWords {
    let of = |name, column, simulated, high, next| RatioWords { name, column, simulated, high, next };
    match ratio {
        Ratio::ClocksPerInstruction => of(
            "clocks per instruction",
            "CPI",
            "modelled cycles / instructions",
            "the core waits; it could execute several instructions in each clock",
            "see which of the ratios below is high, then `memlode report` for the data that are waited for",
        ),
        Ratio::InstructionFetchStall => of(
            "instruction fetch stall",
            "fetch",
            "",
            "code does not arrive in time: it is large, or jumps where nobody expects it",
            "put what runs together next to each other (profile-guided optimisation), and inline less",
        ),
        Ratio::VirtualCalls => of(
            "virtual calls",
            "virtual",
            "",
            "calls through pointers, which a wrong guess makes fetch the wrong code",
            "make the type known where the call is (final classes, templates), or sort objects by type",
        ),
        Ratio::LoadRate => of(
            "load rate",
            "loads",
            "loads / modelled cycles",
            "the load ports are busy: near 2 or 3 nothing else fits, however near the data are",
            "keep values in registers: tile loops, load wider, avoid loading again (`memlode replay --analyse reloads`)",
        ),
        Ratio::StoreOrderBlock => of(
            "store order block",
            "stores",
            "modelled cycles behind a full store buffer / modelled cycles",
            "stores miss, and must be written in order: those behind them wait",
            "write lines one after the other and whole; `memlode sim --time --by line` names the stores",
        ),
        Ratio::L1dMissRate => of(
            "L1d miss rate",
            "L1d",
            "lines missed in L1d / instructions",
            "lines are left before they are used up, or too many are in use",
            "`memlode report` names the members; `memlode advise` tries layouts",
        ),
        Ratio::L2MissRate => of(
            "L2 miss rate",
            "L2",
            "lines missed in L2 / instructions",
            "the data in use do not fit L2",
            "`memlode report`, and tile loops so that their data fit; `memlode replay --analyse working-set`",
        ),
        Ratio::TlbMissPenalty => of(
            "TLB miss penalty",
            "TLB",
            "modelled cycles that wait for page walks / modelled cycles",
            "addresses are spread over more pages than the TLBs hold",
            "use huge pages (`memlode sim --pages 2MiB@heap` says what they buy), or touch pages in order",
        ),
        Ratio::DtlbMissRate => of(
            "DTLB miss rate",
            "DTLB",
            "page walks / instructions",
            "loads find no translation in any TLB",
            "as for the TLB miss penalty; what is used together should be in the same pages",
        ),
        Ratio::ModifiedDataSharing => of(
            "modified data sharing",
            "shared",
            "misses of lines that another core wrote / instructions",
            "threads take lines from each other that were just written",
            "`memlode report --threads` names the members; separate what threads write, or pad it to lines",
        ),
        Ratio::LockedOperations => of(
            "locked operations",
            "locked",
            "modelled cycles of atomic updates and fences / modelled cycles",
            "atomic updates take the time: it should be near zero",
            "count by thread and add up at the end; lock less often, for more work",
        ),
    }
}

/// Returns the name of an event of the kernel.
pub fn software(event: Software) -> &'static str {
    match event {
        Software::TaskClock => "task clock",
        Software::MinorFaults => "minor page faults",
        Software::MajorFaults => "major page faults",
        Software::ContextSwitches => "context switches",
        Software::Migrations => "migrations",
    }
}
