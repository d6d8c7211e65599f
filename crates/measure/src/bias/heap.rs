//! One buffer of a function moved over a page: how much of the cost is aliasing?
//!
//! The function runs in a separate process, which is started anew between passes. Each distance is
//! timed beside the one 2 KiB away, which crosses lines in the same places and aliases nothing. A
//! last process does one call at each distance instruction by instruction, and counts events that
//! can make it slow.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use super::calls::{Placed, Spec};
use super::environment::EnvironmentPair;
use super::function::{ROUNDS, pairs};
use super::sweep::{Extent, SweepSource, Swept, sweep};
use crate::Error;
use crate::inside::{CoreFacts, Facts, Names, SteppedAccess, Steps, Tracee, facts, step};
use crate::names::Name;
use crate::process::{AddressLayout, Launch, Pinned, StopFlag, processors};
use crate::stats::pearson;

/// Bytes of a page, over which a buffer is moved.
const PAGE: usize = 4096;
/// Instructions of one call that are looked at: a few seconds.
const MOST: usize = 1_000_000;
/// The part of the time in which calls are looked at instruction by instruction.
const LOOKING: f64 = 0.25;

/// The program to sweep.
#[derive(Clone, Debug)]
pub struct HeapPlan {
    /// The file of the description.
    pub file: PathBuf,
    /// Its contents.
    pub spec: Spec,
    /// Bytes from one distance to the next; divides 1024.
    pub step: usize,
    /// The words that start this program's other process, to which the file is added.
    pub server: Vec<OsString>,
    /// A library that the other process preloads: an allocator, for one.
    pub preload: Option<PathBuf>,
    /// Time for everything.
    pub time: Duration,
    /// All random choices follow from it.
    pub seed: u64,
}

/// The times of a program or call at all places of a buffer.
#[derive(Clone, Debug, Serialize)]
pub struct Heap {
    /// The function.
    pub function: String,
    /// The buffer that was moved.
    pub moved: String,
    /// Bytes by which it was moved, by context.
    pub distance: Vec<usize>,
    /// The times, by context.
    #[serde(flatten)]
    pub swept: Swept,
    /// Steps of a chain of multiplications that one call takes in the median context: some three cycles each.
    pub steps: f64,
    /// Counts of one call there, by context, as far as there was time to look.
    pub facts: Vec<Option<Facts>>,
    /// Counts by candidate, in their order: loads that agree in the low 12 bits with stores to other data
    /// there and not at the control.
    pub pairs: Vec<Vec<EnvironmentPair>>,
    /// The correlation of times with stores that cross lines, over all contexts; `None` if these do
    /// not vary. Calls that were not examined are assumed to be like the others, apart from the
    /// place of the buffer.
    pub follows_splits: Option<f64>,
    /// One call was not over after as many instructions as were looked at.
    pub cut: bool,
}

/// Sweeps. `tell` receives the number of timings, and the seconds of each.
///
/// # Errors
/// If the function cannot be called, if the time does not suffice, or if it is stopped.
pub fn sweep_buffer(
    plan: &HeapPlan,
    stop: &Arc<StopFlag>,
    tell: &mut dyn FnMut(usize, f64),
) -> Result<Heap, Error> {
    plan.spec.check_moves()?;
    if plan.step == 0 || !(PAGE / 4).is_multiple_of(plan.step) {
        return Err(Error::Usage(format!("--step {} does not divide 1024 bytes", plan.step)));
    }
    let started = Instant::now();
    let contexts = PAGE / plan.step;
    let time = plan.time.mul_f64(1.0 - LOOKING);
    let mut server = Served { plan, stop, now: None, until: started + plan.time };
    server.renew()?;
    let swept = sweep(
        Extent { contexts, page: contexts, time, rounds: ROUNDS, seed: plan.seed },
        &mut server,
        stop,
        tell,
    )?;
    drop(server);
    let looked = look(plan, &swept, stop, plan.time.saturating_sub(started.elapsed()))?;
    let splits: Vec<f64> = looked.splits.iter().map(|splits| *splits as f64).collect();
    Ok(Heap {
        function: plan.spec.function.clone(),
        moved: plan.spec.moved.clone(),
        distance: (0..contexts).map(|context| context * plan.step).collect(),
        steps: swept.middle.exp(),
        follows_splits: Some(pearson(&swept.ratio, &splits)).filter(|r| r.is_finite()),
        facts: looked.facts,
        pairs: looked.pairs,
        cut: looked.cut,
        swept,
    })
}

/// The other process, which calls the function.
struct Server {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

struct Served<'a> {
    plan: &'a HeapPlan,
    stop: &'a Arc<StopFlag>,
    now: Option<Server>,
    until: Instant,
}

impl SweepSource for Served<'_> {
    fn time(&mut self, context: usize) -> Result<f64, Error> {
        let server = self.now.as_mut().ok_or(Error::Interrupted)?;
        let asked = writeln!(server.to, "{}", context * self.plan.step);
        let answer = match asked {
            Ok(()) => server.answer(self.stop, self.until)?,
            Err(_) => String::new(),
        };
        match answer.trim().parse::<f64>() {
            Ok(cost) if cost > 0.0 => Ok(cost.ln()),
            _ => Err(self.failed()),
        }
    }

    fn renew(&mut self) -> Result<(), Error> {
        self.now = None;
        let words = &self.plan.server;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg(&self.plan.file);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        if let Some(library) = &self.plan.preload {
            command.env("LD_PRELOAD", library);
        }
        let mut child = command.spawn().map_err(|source| Error::NotStarted {
            program: words[0].to_string_lossy().into_owned(),
            source,
        })?;
        if let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) {
            self.now = Some(Server { child, to, from: BufReader::new(from) });
        }
        Ok(())
    }
}

impl Served<'_> {
    /// Why there was no answer.
    fn failed(&mut self) -> Error {
        let Some(mut server) = self.now.take() else { return Error::Interrupted };
        let mut said = String::new();
        if let Some(mut errors) = server.child.stderr.take() {
            let _ = errors.read_to_string(&mut said);
        }
        let function = &self.plan.spec.function;
        let Ok(status) = server.child.wait() else { return Error::Interrupted };
        let said = said.lines().next().unwrap_or_default().trim_start_matches("memlode: ");
        Error::Usage(match (said.is_empty(), std::os::unix::process::ExitStatusExt::signal(&status)) {
            (_, Some(signal)) => format!(
                "`{function}` was ended by signal {signal}: does {} describe its arguments, and are its buffers long enough?",
                self.plan.file.display()
            ),
            (true, None) => format!("`{function}` ended the process that called it"),
            (false, None) => said.to_owned(),
        })
    }
}

impl Server {
    fn answer(&mut self, stop: &StopFlag, until: Instant) -> Result<String, Error> {
        let slice = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if Instant::now() > until {
                return Err(Error::Usage(
                    "one call takes too long for this time: give a longer --time-limit".into(),
                ));
            }
            match poll(
                &mut [PollFd::from_borrowed_fd(self.from.get_ref().as_fd(), PollFlags::IN)],
                Some(&slice),
            ) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => break,
                Err(error) => {
                    return Err(Error::System { doing: "cannot wait for an answer", source: error.into() });
                }
            }
        }
        let mut line = String::new();
        let read = self.from.read_line(&mut line);
        read.map_err(|source| Error::System { doing: "cannot read an answer", source })?;
        Ok(line)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Looked {
    facts: Vec<Option<Facts>>,
    /// Stores that cross lines, by context.
    splits: Vec<usize>,
    pairs: Vec<Vec<EnvironmentPair>>,
    cut: bool,
}

/// Looks at calls: of candidates and their controls in any case, of the other contexts while there is time.
fn look(plan: &HeapPlan, swept: &Swept, stop: &Arc<StopFlag>, time: Duration) -> Result<Looked, Error> {
    let started = Instant::now();
    let contexts = swept.ratio.len();
    let mut order: Vec<usize> = swept.candidates.iter().flat_map(|one| [one.context, one.control]).collect();
    let fastest = (0..contexts).min_by(|a, b| swept.ratio[*a].total_cmp(&swept.ratio[*b]));
    order.extend(fastest);
    let wanted = order.len();
    let others: Vec<usize> = (0..contexts).filter(|context| !order.contains(context)).collect();
    order.extend(others);
    let mut words = plan.server.clone();
    words.push("--show".into());
    let list: Vec<String> = order.iter().map(|context| (context * plan.step).to_string()).collect();
    words.push(list.join(",").into());
    words.push(plan.file.clone().into());
    let launch = Launch { words, ..Launch::default() };
    // To wake a process on another processor takes ten times as long as one instruction of it.
    let _pinned = processors().first().map(|cpu| Pinned::to(*cpu));
    // The time is for what is not needed; what is needed gets what it needs.
    let mut tracee = Tracee::start(&launch, AddressLayout::GIVEN, stop, Duration::from_secs(3600))?;
    let core = CoreFacts::of_host();
    let mut looked =
        Looked { facts: vec![None; contexts], splits: Vec::new(), pairs: Vec::new(), cut: false };
    let mut example = None;
    let mut seen: Vec<Option<(Steps, Facts)>> = vec![None; contexts];
    let mut namer = None;
    for (number, &context) in order.iter().enumerate() {
        if number >= wanted && started.elapsed() > time {
            break;
        }
        tracee.resume(Some(&plan.spec.function))?;
        let registers = tracee.registers()?;
        let placed = placed(&tracee, registers.rdi, registers.rsi)?;
        let function = registers.rax;
        let entry = tracee.run_to(function, &plan.spec.function)?;
        let mut back = [0; 8];
        tracee.read(entry.rsp, &mut back)?;
        if namer.is_none() {
            example = Some((context, placed.clone()));
            namer = Some(Namer { names: names(&tracee, function), placed, spec: &plan.spec });
        }
        let steps = step(&mut tracee, u64::from_ne_bytes(back), entry.rsp, MOST)?;
        let facts = facts(&steps, core);
        if let Some((first, placed)) = example.take() {
            let of = |context: usize| context.wrapping_sub(first).wrapping_mul(plan.step) as u64;
            let line = u64::from(core.cache.line_bytes);
            let splits = |context: usize| splits(&steps, &placed, &plan.spec, of(context), line);
            looked.splits = (0..contexts).map(splits).collect();
        }
        looked.splits[context] = facts.split_stores;
        looked.facts[context] = Some(facts.clone());
        if steps.cut {
            // What follows it is not known to be the end of a call.
            looked.cut = true;
            break;
        }
        if number < wanted {
            seen[context] = Some((steps, facts));
        }
    }
    for one in &swept.candidates {
        let name = |access: &_| namer.as_ref().map_or_else(unknown, |namer| namer.name(access));
        let of = seen[one.context].as_ref().map(|slow| pairs(slow, seen[one.control].as_ref(), &name));
        looked.pairs.push(of.unwrap_or_default());
    }
    Ok(looked)
}

/// Stores that cross lines of `line` bytes if the buffer is `by` bytes further than it was.
fn splits(steps: &Steps, placed: &[Placed], spec: &Spec, by: u64, line: u64) -> usize {
    let is_moved = |one: &&Placed| spec.buffers[one.buffer as usize].name == spec.moved;
    let moved: Vec<Range<u64>> =
        placed.iter().filter(is_moved).map(|one| one.start..one.start + one.bytes).collect();
    let crosses = |access: &&SteppedAccess| {
        let moves = moved.iter().any(|range| range.contains(&access.address));
        let address = if moves { access.address.wrapping_add(by) } else { access.address };
        address % line + u64::from(access.bytes) > line
    };
    steps.accesses.iter().filter(|access| access.is_store).filter(crosses).count()
}

fn unknown() -> Name {
    Name { data: "memory".into(), is_stack: false, place: "?".into() }
}

/// Names buffers by the description, and everything else by the library's symbols.
struct Namer<'a> {
    names: Option<Names>,
    placed: Vec<Placed>,
    spec: &'a Spec,
}

impl Namer<'_> {
    fn name(&self, access: &SteppedAccess) -> Name {
        let mut name = match &self.names {
            Some(names) => names.name(access),
            None => Name { place: format!("{:#x}", access.instruction), ..unknown() },
        };
        // The buffer that is moved was elsewhere when its place was written down, by less than its room.
        let near = |one: &&Placed| {
            let room = super::calls::REACH as u64;
            (one.start.saturating_sub(room)..one.start + one.bytes + room).contains(&access.address)
        };
        if let Some(one) = self.placed.iter().find(near)
            && let Some(buffer) = self.spec.buffers.get(one.buffer as usize)
        {
            name = Name { data: buffer.name.clone(), is_stack: false, ..name };
        }
        name
    }
}

fn placed(tracee: &Tracee, at: u64, count: u64) -> Result<Vec<Placed>, Error> {
    let mut bytes = vec![0; count as usize * size_of::<Placed>()];
    tracee.read(at, &mut bytes)?;
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    let one = |bytes: &[u8]| Placed {
        start: word(&bytes[..8]),
        bytes: word(&bytes[8..16]),
        buffer: word(&bytes[16..]),
    };
    Ok(bytes.chunks_exact(size_of::<Placed>()).map(one).collect())
}

/// Names of the library that an address lies in.
fn names(tracee: &Tracee, address: u64) -> Option<Names> {
    let mappings = tracee.mappings();
    let (_, _, file) = mappings.iter().find(|(from, to, _)| (*from..*to).contains(&address))?;
    let base = mappings.iter().filter(|(_, _, name)| name == file).map(|(from, _, _)| *from).min()?;
    let mut names = Names::of(Path::new(file)).ok()?;
    names.loaded_from(base);
    Some(names)
}
