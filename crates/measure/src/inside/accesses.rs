//! Reads and writes of a call, instruction by instruction, and the events among them that can make
//! it slow.

use std::collections::{BTreeMap, HashMap};

use memlode_machine::{HostSources, InFlight};
use memlode_simulate::{Cause, Detailed, Hierarchy, LevelSpec, MemRef, StoreBuffer};
use memlode_symbols::instruction::{LONGEST, Operands};
use memlode_symbols::{GeneralRegisters, Instruction};
use serde::Serialize;

use super::tracee::{Registers, Tracee};
use crate::Error;

/// Accesses from a store on after which a load that agrees with it is not counted: the store has left by then.
const REACH: u32 = 30;
const PAGE: u64 = 4096;
/// Bytes below the stack pointer that a function may use without saying so.
const RED_ZONE: u64 = 128;

/// One load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteppedAccess {
    /// The instruction.
    pub instruction: u64,
    /// The first byte.
    pub address: u64,
    /// Bytes.
    pub bytes: u32,
    /// It stores. An instruction that does both is a load and a store here.
    pub is_store: bool,
    /// The frame that it lies in, if that is one of the call's own.
    pub frame: Option<SteppedFrame>,
}

impl SteppedAccess {
    /// The access as one of the first core.
    fn made(&self) -> MemRef {
        MemRef::read(0, self.address, self.bytes).writing(self.is_store)
    }
}

/// A place in a frame of the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SteppedFrame {
    /// The first instruction of the function that the frame belongs to.
    pub function: u64,
    /// Bytes from the frame's canonical address (where the caller's frame ends) to the access; less than zero.
    pub offset: i64,
}

/// All accesses of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// In order.
    pub accesses: Vec<SteppedAccess>,
    /// Instructions.
    pub instructions: usize,
    /// Accesses whose addresses are not known: gathers, scatters, and instructions that save all
    /// registers at once.
    pub untold: usize,
    /// The call was not over after the requested number of instructions.
    pub cut: bool,
}

/// Follows a call to its end. The program stands at the first instruction of a function that returns to `back`, with the stack
/// pointer `stack`.
///
/// # Errors
/// If the program does not survive that.
pub fn step(tracee: &mut Tracee, back: u64, stack: u64, most: usize) -> Result<Steps, Error> {
    let mut steps = Steps::default();
    let mut known: HashMap<u64, Instruction> = HashMap::new();
    let mut operands = Operands::default();
    let mut registers = tracee.registers()?;
    // First instructions and canonical addresses of functions that have not returned, the innermost last.
    let mut frames = vec![(registers.rip, stack + 8)];
    while registers.rip != back {
        if steps.instructions == most {
            steps.cut = true;
            break;
        }
        let at = registers.rip;
        let instruction = match known.get(&at) {
            Some(instruction) => *instruction,
            None => {
                let mut code = [0; LONGEST];
                let got = tracee.read_some(at, &mut code);
                let instruction = Instruction::decode(&code[..got], at).ok_or_else(|| {
                    Error::Usage(format!("the instruction at {at:#x} of the program is unknown to memlode"))
                })?;
                known.insert(at, instruction);
                instruction
            }
        };
        note(&instruction, &registers, &mut operands, &frames, &mut steps);
        steps.instructions += 1;
        tracee.step()?;
        registers = tracee.registers()?;
        if instruction.is_call() {
            frames.push((registers.rip, registers.rsp + 8));
        }
        while frames.len() > 1 && frames.last().is_some_and(|(_, canonical)| registers.rsp >= *canonical) {
            frames.pop();
        }
    }
    Ok(steps)
}

fn note(
    instruction: &Instruction,
    registers: &Registers,
    operands: &mut Operands,
    frames: &[(u64, u64)],
    steps: &mut Steps,
) {
    let values = values(registers);
    // Loads come first, whatever the order of operands.
    let (mut loads, mut stores) = (Vec::new(), Vec::new());
    for operand in operands.of(instruction) {
        let bytes = operand.bytes;
        let Some(address) = operand.address(&values).filter(|_| bytes > 0) else {
            steps.untold += 1;
            continue;
        };
        let inside = address + RED_ZONE >= registers.rsp;
        let frame = frames.iter().rev().find(|(_, canonical)| inside && address < *canonical);
        let frame = frame.map(|(function, canonical)| SteppedFrame {
            function: *function,
            offset: address.wrapping_sub(*canonical) as i64,
        });
        let access =
            |is_store| SteppedAccess { instruction: instruction.address(), address, bytes, is_store, frame };
        loads.extend(operand.loads.then(|| access(false)));
        stores.extend(operand.stores.then(|| access(true)));
    }
    steps.accesses.append(&mut loads);
    steps.accesses.append(&mut stores);
}

/// The values that an address can be made of.
fn values(of: &Registers) -> GeneralRegisters {
    GeneralRegisters {
        general: [
            of.rax, of.rdx, of.rcx, of.rbx, of.rsi, of.rdi, of.rbp, of.rsp, of.r8, of.r9, of.r10, of.r11,
            of.r12, of.r13, of.r14, of.r15,
        ],
        fs_base: Some(of.fs_base),
        gs_base: Some(of.gs_base),
    }
}

/// Facts about a call's accesses that can make it slow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Facts {
    /// Instructions of the call.
    pub instructions: usize,
    /// Loads.
    pub loads: usize,
    /// Stores.
    pub stores: usize,
    /// Loads that cross the end of a 64-byte line.
    pub split_loads: usize,
    /// Stores that do.
    pub split_stores: usize,
    /// Loads and stores that cross the end of a 4 KiB page.
    pub page_splits: usize,
    /// Misses of a second call in the first-level cache that one of the same size without sets would not have.
    pub set_conflicts: usize,
    /// Loads that agree in the low 12 bits with a store to other data shortly before.
    pub aliases: usize,
    /// The pairs of these.
    pub pairs: Vec<Agreeing>,
}

/// Loads and stores to other data that agree in the low 12 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Agreeing {
    /// Times.
    pub count: usize,
    /// Accesses from the store to the load, at least.
    pub least: u32,
    /// Position of a load in the call's accesses.
    pub load: usize,
    /// Position of the store that it met.
    pub store: usize,
}

/// A load that agrees in the low 12 bits with a store to other data shortly before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AliasedLoad {
    /// Position of the load in the call's accesses.
    pub load: usize,
    /// Position of the store.
    pub store: usize,
    /// Accesses from the store to the load.
    pub accesses: u32,
}

/// Finds all loads that agree with a store shortly before, on a core that keeps so much in flight.
pub fn aliased_loads(steps: &Steps, flight: InFlight) -> Vec<AliasedLoad> {
    let mut stores = StoreBuffer::new(flight.stores, flight.instructions, 1);
    let mut found = Vec::new();
    for (load, access) in steps.accesses.iter().enumerate() {
        let conflict = stores.access(access.made().tagged(load as u32));
        let Some(conflict) = conflict.filter(|conflict| conflict.accesses <= REACH) else { continue };
        found.push(AliasedLoad { load, store: conflict.store_tag.index(), accesses: conflict.accesses });
    }
    found
}

/// The parts of a processor that decide what can make a call slow.
#[derive(Clone, Copy, Debug)]
pub struct CoreFacts {
    /// The first-level cache, and with it the lines.
    pub cache: LevelSpec,
    /// Stores on their way to the cache at most, and instructions within which they are.
    pub flight: InFlight,
}

impl CoreFacts {
    /// Returns the parts of this machine.
    pub fn of_host() -> CoreFacts {
        let machine = HostSources::default().detect();
        let (bytes, ways) = machine.levels.first().map_or((32 << 10, 8), |level| (level.bytes, level.ways));
        let cache = LevelSpec { bytes, ways, line_bytes: machine.line_bytes, shared_by: 1 };
        CoreFacts { cache, flight: machine.flight() }
    }
}

/// Counts, on such a core.
pub fn facts(steps: &Steps, core: CoreFacts) -> Facts {
    let line = u64::from(core.cache.line_bytes);
    let mut facts = Facts { instructions: steps.instructions, ..Facts::default() };
    for access in &steps.accesses {
        let crosses = |unit: u64| access.address % unit + u64::from(access.bytes) > unit;
        let (count, split) = match access.is_store {
            true => (&mut facts.stores, &mut facts.split_stores),
            false => (&mut facts.loads, &mut facts.split_loads),
        };
        *count += 1;
        *split += usize::from(crosses(line));
        facts.page_splits += usize::from(crosses(PAGE));
    }
    let mut pairs: BTreeMap<(u64, u64), Agreeing> = BTreeMap::new();
    for AliasedLoad { load, store, accesses: least } in aliased_loads(steps, core.flight) {
        facts.aliases += 1;
        let key = (steps.accesses[load].instruction, steps.accesses[store].instruction);
        let pair = pairs.entry(key).or_insert(Agreeing { count: 0, least, load, store });
        pair.count += 1;
        pair.least = pair.least.min(least);
    }
    facts.pairs = pairs.into_values().collect();
    facts.pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.count), pair.least, pair.load));
    facts.set_conflicts = conflicts(steps, core.cache).unwrap_or(0);
    facts
}

/// Returns the conflicts of a second pass over the same accesses, so that first uses do not count; `None` of an impossible cache.
fn conflicts(steps: &Steps, cache: LevelSpec) -> Option<usize> {
    let mut caches = Detailed::new(Hierarchy::new(&[cache], 1).ok()?);
    let mut pass = || {
        let mut of = |access: &SteppedAccess| caches.access(access.made());
        steps.accesses.iter().filter(|access| of(access).causes().next() == Some(Cause::Conflict)).count()
    };
    pass();
    Some(pass())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: CoreFacts = CoreFacts {
        cache: LevelSpec { bytes: 32 << 10, ways: 8, line_bytes: 64, shared_by: 1 },
        flight: InFlight { stores: 56, instructions: 224 },
    };

    fn steps(of: impl IntoIterator<Item = (u64, u64, u32, bool)>) -> Steps {
        let access = |(instruction, address, bytes, is_store)| SteppedAccess {
            instruction,
            address,
            bytes,
            is_store,
            frame: None,
        };
        Steps { accesses: of.into_iter().map(access).collect(), ..Steps::default() }
    }

    #[test]
    fn splits_are_those_of_lines_and_pages() {
        let found = facts(
            &steps([(1, 60, 4, true), (1, 60, 8, true), (2, 4092, 8, false), (2, 100, 16, true)]),
            CORE,
        );
        assert_eq!((found.loads, found.stores), (1, 3));
        assert_eq!((found.split_loads, found.split_stores, found.page_splits), (1, 1, 1));
        let wide = CoreFacts { cache: LevelSpec { line_bytes: 128, ..CORE.cache }, ..CORE };
        let found = facts(&steps([(1, 60, 8, true), (1, 124, 8, true)]), wide);
        assert_eq!(found.split_stores, 1, "lines of 128 bytes");
    }

    /// A store to one page is followed by a load of another that agrees with it, by one that does not, and by one of the same
    /// place, which is no conflict.
    #[test]
    fn agreeing_pairs_are_named_by_instruction() {
        let turn = |at: u64| {
            let address = 0x10_000 + 8 * at;
            [
                (10, address, 8, true),
                (11, address + 0x5000, 8, false),
                (12, address + 0x5800, 8, false),
                (13, address, 8, false),
            ]
        };
        let found = facts(&steps((0..50).flat_map(turn)), CORE);
        assert_eq!(found.aliases, 50);
        let [pair] = found.pairs[..] else { panic!("{found:?}") };
        assert_eq!((pair.count, pair.least), (50, 1));
        assert_eq!((pair.load, pair.store), (1, 0));
    }

    /// Nine lines of one set do not fit into eight ways, and would into the cache.
    #[test]
    fn lines_of_one_set_conflict() {
        let apart =
            |stride: u64| facts(&steps((0..9).map(move |at| (1, stride * at, 8, false))), CORE).set_conflicts;
        assert_eq!((apart(4096), apart(4096 + 64)), (9, 0));
    }
}
