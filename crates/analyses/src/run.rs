//! Several analyses over one replay.

use memlode_attribute::annotate::{AnnotatedAccesses, Cells, Extras, Options};

use crate::{
    Arguments, BadArgument, BadPart, Blocks, Findings, Merged, Registered, Running, Splits, View, all,
};

/// The requested analyses, and those that they go on from, each once and in an order in which each
/// comes after those.
#[derive(Default)]
pub struct Run {
    running: Vec<Step>,
}

struct Step {
    running: Box<dyn Running>,
    is_wanted: bool,
}

impl Run {
    /// Adds an analysis, and before it those that it goes on from.
    pub fn add(&mut self, known: &Registered, arguments: &Arguments) -> Result<(), BadArgument> {
        self.add_of(&all(), known, arguments)
    }

    fn add_of(
        &mut self,
        registry: &[Registered],
        known: &Registered,
        arguments: &Arguments,
    ) -> Result<(), BadArgument> {
        let running = known.begin(arguments)?;
        for before in known.meta.after {
            if !self.running.iter().any(|step| step.running.meta().id == *before) {
                let needed = registry.iter().find(|known| known.meta.id == *before);
                let needed = needed.expect("an analysis goes on from one of the registry");
                self.add_of(registry, needed, &Arguments::default())?;
                self.running.last_mut().expect("it was added").is_wanted = false;
            }
        }
        self.running.push(Step { running, is_wanted: true });
        Ok(())
    }

    /// Shows a batch to all of them.
    pub fn observe(&mut self, rows: &AnnotatedAccesses, view: &View<'_>) {
        self.running.iter_mut().for_each(|step| step.running.observe(rows, view));
    }

    /// Into which parts a trace may be split for all of them.
    pub fn splits(&self) -> Splits {
        let any = Splits { chunks: true, address: Some(Blocks::Bytes), thread: true, time: true };
        self.running.iter().map(|step| step.running.splits()).fold(any, |all, one| Splits {
            chunks: all.chunks && one.chunks,
            address: all.address.and_then(|blocks| one.address.map(|one| blocks.max(one))),
            thread: all.thread && one.thread,
            time: all.time && one.time,
        })
    }

    /// Returns whether one of them looks at the level that served an access.
    pub fn reads_levels(&self) -> bool {
        self.running.iter().any(|step| step.running.reads_levels())
    }

    /// The options of their own replay.
    pub fn options(&self) -> Options {
        let extras = self.running.iter().map(|step| step.running.extras());
        Options { blocks: true, extras: extras.fold(Extras::default(), Extras::and), ..Options::default() }
    }

    /// Returns whether one of them looks at what accesses load and store.
    pub fn reads_values(&self) -> bool {
        self.running.iter().any(|step| step.running.extras().values)
    }

    /// Bytes of the state of each, with the cells and objects that they use of their replay's `cells`.
    pub fn save(self, cells: &Cells) -> Vec<Vec<u8>> {
        self.running.into_iter().map(|step| step.running.save(cells)).collect()
    }

    /// Takes up the states of another replay instead, of which `next` gives the bytes.
    ///
    /// # Errors
    /// A state is damaged, or names what the trace does not have ([`Running::load`]).
    pub fn load<'b>(
        self,
        mut next: impl FnMut() -> Result<&'b [u8], BadPart>,
        merged: &mut Merged,
        view: &View<'_>,
    ) -> Result<Run, BadPart> {
        let mut running = Vec::new();
        for Step { running: known, is_wanted } in self.running {
            running.push(Step { running: known.load(next()?, merged, view)?, is_wanted });
        }
        Ok(Run { running })
    }

    /// Adds what the same analyses saw in another part. Where parts are stretches of time, `later` follows.
    pub fn merge(&mut self, later: Run) {
        for (step, later) in self.running.iter_mut().zip(later.running) {
            step.running.merge(later.running);
        }
    }

    /// Returns the results of the requested analyses, in the order of the request.
    pub fn finish(self, view: &View<'_>) -> Vec<Findings> {
        let mut found: Vec<(&str, bool, Findings)> = Vec::new();
        for Step { running, is_wanted } in self.running {
            let meta = running.meta();
            let of =
                |id: &&str| found.iter().find(|(known, ..)| known == id).map(|(.., found)| found.clone());
            let before: Vec<Findings> = meta.after.iter().filter_map(of).collect();
            found.push((meta.id, is_wanted, running.finish(&View { before: &before, ..*view })));
        }
        found.into_iter().filter(|(_, is_wanted, _)| *is_wanted).map(|(.., found)| found).collect()
    }
}

#[cfg(test)]
mod tests {
    use memlode_machine::Machine;
    use memlode_trace::sites::SiteTable;

    use super::*;
    use crate::{
        Analysis, BadNumber, CellPacker, CellUnpacker, Column, Holds, Meta, Reads, Table, TableMeta, Value,
    };

    const ROWS: TableMeta = TableMeta {
        id: "rows",
        title: "Rows",
        is_whole: true,
        columns: &[Column { id: "rows", holds: Holds::Count }],
    };

    /// Counts rows; or, if it goes on from another analysis, doubles its count.
    struct Count<const AFTER: bool>;

    impl<const AFTER: bool> Analysis for Count<AFTER> {
        const META: Meta = Meta {
            id: if AFTER { "double" } else { "count" },
            title: "rows",
            reads: Reads::Rows,
            inlines: false,
            levels: false,
            after: if AFTER { &["count"] } else { &[] },
            splits: Splits { chunks: true, address: None, thread: true, time: true },
            arguments: &[],
            tables: &[ROWS],
        };

        type State = u64;
        type Saved = u64;

        fn new(_arguments: &Arguments) -> Result<Count<AFTER>, BadArgument> {
            Ok(Count)
        }

        fn start(&self) -> u64 {
            0
        }

        fn observe(&self, state: &mut u64, rows: &AnnotatedAccesses, _view: &View<'_>) {
            *state += rows.rows() as u64;
        }

        fn merge(&self, state: &mut u64, later: u64) {
            *state += later;
        }

        fn save(&self, state: u64, _carried: &mut CellPacker<'_>) -> u64 {
            state
        }

        fn load(&self, saved: u64, _carried: &CellUnpacker<'_>) -> Result<u64, BadNumber> {
            Ok(saved)
        }

        fn finish(&self, state: u64, view: &View<'_>) -> Findings {
            let before = view.before.first().map(|found| found.tables[0].rows[0][0].clone());
            let rows = match before {
                Some(Value::Count(before)) => 2 * before,
                _ => state,
            };
            Findings {
                findings: Vec::new(),
                tables: vec![Table::plain(&Self::META.tables[0], vec![vec![Value::Count(rows)]])],
            }
        }
    }

    #[test]
    fn an_analysis_goes_on_from_another_that_nobody_asked_for() {
        let registry = [Registered::of::<Count<true>>(), Registered::of::<Count<false>>()];
        let machine = Machine::named("generic").expect("a built-in machine");
        let (cells, names) = (Cells::default(), SiteTable::default());
        let view = View {
            cells: &cells,
            names: &names,
            threads: &[],
            machine: &machine,
            levels: &[],
            latencies: &[],
            clock: None,
            counted: None,
            before: &[],
        };
        let found = |wanted: &[usize]| {
            let mut run = Run::default();
            for &wanted in wanted {
                run.add_of(&registry, &registry[wanted], &Arguments::default()).expect("no arguments");
            }
            run.observe(&AnnotatedAccesses { address: vec![1, 2, 3], ..AnnotatedAccesses::default() }, &view);
            let count = |found: Findings| match found.tables[0].rows[0][0] {
                Value::Count(count) => count,
                _ => panic!("a count"),
            };
            run.finish(&view).into_iter().map(count).collect::<Vec<u64>>()
        };
        assert_eq!(found(&[0]), [6]);
        assert_eq!(found(&[1, 0]), [3, 6]);
        assert_eq!(found(&[0, 1]), [6, 3]);
    }
}
