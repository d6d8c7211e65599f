//! The interface of every analysis.

use std::any::Any;
use std::sync::Arc;

use memlode_attribute::annotate::{AnnotatedAccesses, Cells, Extras};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bytes::{Opened, Sealer};
use crate::carried::Carried;
use crate::{
    Arguments, BadArgument, BadNumber, BadPart, CellPacker, CellUnpacker, Finding, Merged, Table, TableMeta,
    View,
};

/// An analysis: one file in `analyses/`, whose doc comment is the user's page on it.
///
/// The caller makes a state with [`Analysis::start`], passes it rows in replay order, and takes the
/// results at the end. Several states may each see a part of the trace, as far as [`Meta::splits`]
/// allows, and be merged: the result is that of one state that saw everything, to the digit. A
/// state is used by one thread at a time.
pub trait Analysis: Send + Sync + Sized + 'static {
    /// Its own description.
    const META: Meta;

    /// All that it has seen so far.
    type State: Send;

    /// A state on its way to another replay. It names threads, sites, strings and locations by their
    /// numbers, and cells and objects by those that a [`CellPacker`] gave.
    type Saved: Serialize + DeserializeOwned;

    /// Reads its arguments, of which the names are checked already.
    fn new(arguments: &Arguments) -> Result<Self, BadArgument>;

    /// Into which parts a trace may be split for it, with its arguments.
    fn splits(&self) -> Splits {
        Self::META.splits
    }

    /// Returns whether it looks at the level that served an access, with its arguments.
    fn reads_levels(&self) -> bool {
        Self::META.levels
    }

    /// Facts about accesses that it looks at besides.
    fn extras(&self) -> Extras {
        Extras::default()
    }

    /// Nothing seen yet.
    fn start(&self) -> Self::State;

    /// Takes a batch of accesses. Names that the batch does not use may be missing in the view, as
    /// the trace may still be written. Analyses of counted cells take none.
    fn observe(&self, _state: &mut Self::State, _rows: &AnnotatedAccesses, _view: &View<'_>) {}

    /// Adds what another part of the trace showed. Where parts are stretches of time, `later` follows.
    fn merge(&self, state: &mut Self::State, later: Self::State);

    /// Makes a state ready to leave its replay. It can then be merged and finished, and sees no more accesses.
    fn save(&self, state: Self::State, carried: &mut CellPacker<'_>) -> Self::Saved;

    /// Reads what [`Analysis::save`] made. It comes from a stranger: each number is checked before it is used.
    fn load(&self, saved: Self::Saved, carried: &CellUnpacker<'_>) -> Result<Self::State, BadNumber>;

    /// Returns the results, after the last batch.
    fn finish(&self, state: Self::State, view: &View<'_>) -> Findings;
}

/// An analysis's own description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// Short name, stable, as on the command line: `working-set`.
    pub id: &'static str,
    /// Its subject, in a few words.
    pub title: &'static str,
    /// Its input.
    pub reads: Reads,
    /// True if it looks at the lines that a site was inlined into ([`View::inlines`]): such a trace needs
    /// debug information.
    pub inlines: bool,
    /// True if it looks at the level that served an access; without it, nothing need be simulated.
    pub levels: bool,
    /// Analyses whose results it goes on from ([`View::before`]).
    pub after: &'static [&'static str],
    /// Into which parts a trace may be split for it.
    pub splits: Splits,
    /// Its arguments.
    pub arguments: &'static [Argument],
    /// The tables that it fills, in this order.
    pub tables: &'static [TableMeta],
}

/// The input of an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Counts by thread, site and class of objects ([`View::counted`]), which every report has.
    Cells,
    /// Every access with the level that served it, in replay order.
    Rows,
}

/// The parts into which a trace may be split so that the merged result is that of the whole, to the
/// digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Splits {
    /// Splits by chunk, in any order, each decoded without the rest of the trace: it looks neither at objects, nor at levels, nor at
    /// what comes before what.
    pub chunks: bool,
    /// Splits by address, into whole blocks. An access that crosses from one block to the next is cut there, and each part sees its
    /// piece.
    pub address: Option<Blocks>,
    /// Splits by thread.
    pub thread: bool,
    /// Splits by time, into stretches of replay order, merged in that order.
    pub time: bool,
}

/// Blocks of addresses that must not be divided, the smallest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blocks {
    /// Single bytes.
    Bytes,
    /// The machine's lines ([`View::line_bytes`]).
    Lines,
}

/// An argument of an analysis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// Its meaning and its default.
    pub help: &'static str,
}

/// Findings and tables of an analysis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Findings, the costliest first.
    pub findings: Vec<Finding>,
    /// Tables, those of [`Meta::tables`].
    pub tables: Vec<Table>,
}

/// An analysis that can be selected by name.
#[derive(Clone, Copy)]
pub struct Registered {
    /// Its own description.
    pub meta: Meta,
    make: fn(&Arguments) -> Result<Box<dyn Running>, BadArgument>,
}

/// An analysis with a state. It is made before the trace is there, which may still be written meanwhile.
pub trait Running: Send {
    /// Returns its description.
    fn meta(&self) -> Meta;

    /// [`Analysis::splits`].
    fn splits(&self) -> Splits;

    /// [`Analysis::reads_levels`].
    fn reads_levels(&self) -> bool;

    /// [`Analysis::extras`].
    fn extras(&self) -> Extras;

    /// [`Analysis::observe`].
    fn observe(&mut self, rows: &AnnotatedAccesses, view: &View<'_>);

    /// The same analysis for another part of the trace.
    fn fork(&self) -> Box<dyn Running>;

    /// [`Analysis::merge`].
    ///
    /// # Panics
    /// If `later` is another analysis.
    fn merge(&mut self, later: Box<dyn Running>);

    /// Bytes of [`Analysis::save`], with the cells and objects that the state uses of its replay's `cells`.
    fn save(self: Box<Self>, cells: &Cells) -> Vec<u8>;

    /// The state that [`Running::save`] of this analysis made bytes of. Its cells and objects are among those of `merged` from
    /// then on. `view` has the names of the trace.
    ///
    /// # Errors
    /// That they are not such bytes, or that the trace has not what they speak of.
    fn load(&self, bytes: &[u8], merged: &mut Merged, view: &View<'_>) -> Result<Box<dyn Running>, BadPart>;

    /// [`Analysis::finish`].
    fn finish(self: Box<Self>, view: &View<'_>) -> Findings;

    /// For [`Running::merge`].
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl Registered {
    /// An analysis as the registry has it.
    pub const fn of<A: Analysis>() -> Registered {
        Registered {
            meta: A::META,
            make: |arguments| Ok(Box::new(State::<A>::new(Arc::new(A::new(arguments)?)))),
        }
    }

    /// Starts it.
    pub fn begin(&self, arguments: &Arguments) -> Result<Box<dyn Running>, BadArgument> {
        arguments.check(&self.meta)?;
        (self.make)(arguments)
    }
}

struct State<A: Analysis> {
    analysis: Arc<A>,
    state: A::State,
}

impl<A: Analysis> State<A> {
    fn new(analysis: Arc<A>) -> State<A> {
        State { state: analysis.start(), analysis }
    }
}

impl<A: Analysis> Running for State<A> {
    fn meta(&self) -> Meta {
        A::META
    }

    fn splits(&self) -> Splits {
        self.analysis.splits()
    }

    fn reads_levels(&self) -> bool {
        self.analysis.reads_levels()
    }

    fn extras(&self) -> Extras {
        self.analysis.extras()
    }

    fn observe(&mut self, rows: &AnnotatedAccesses, view: &View<'_>) {
        self.analysis.observe(&mut self.state, rows, view);
    }

    fn fork(&self) -> Box<dyn Running> {
        Box::new(State::new(self.analysis.clone()))
    }

    fn merge(&mut self, later: Box<dyn Running>) {
        let later = later.into_any().downcast::<State<A>>().expect("two states of one analysis");
        self.analysis.merge(&mut self.state, later.state);
    }

    fn save(self: Box<Self>, cells: &Cells) -> Vec<u8> {
        let mut packer = CellPacker::new(cells);
        let saved = self.analysis.save(self.state, &mut packer);
        Sealer::new().value(&A::META.id).value(&packer.carried()).value(&saved).seal()
    }

    fn load(&self, bytes: &[u8], merged: &mut Merged, view: &View<'_>) -> Result<Box<dyn Running>, BadPart> {
        let mut opened = Opened::new(bytes)?;
        let id: String = opened.value()?;
        if id != A::META.id {
            return Err(BadPart::OtherWhole(format!(
                "one is of {id}, where one of {} should be",
                A::META.id
            )));
        }
        let (carried, saved): (Carried, A::Saved) = (opened.value()?, opened.value()?);
        opened.end()?;
        let state = self.analysis.load(saved, &merged.take(carried, view)?)?;
        Ok(Box::new(State { analysis: self.analysis.clone(), state }))
    }

    fn finish(self: Box<Self>, view: &View<'_>) -> Findings {
        self.analysis.finish(self.state, view)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
