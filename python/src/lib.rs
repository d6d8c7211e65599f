//! `import memlode`: annotated accesses as Arrow record batches.
//!
//! Output of `memlode replay`, without a pipe in between: batches are handed over by the Arrow PyCapsule interface, so pyarrow,
//! polars, DuckDB and whatever else knows it take them as they lie in memory, and none of them is needed here.

mod advise;
mod capsules;
mod hot_cold;
mod parts;
mod results;
mod table;

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use memlode_attribute::annotate::{Annotations, Next};
use memlode_attribute::setup::{Pages, Setup};
use memlode_export::{ArrowTable, BatchEncoder, ExportRequest, Field, request};
use memlode_machine::Machine;
use memlode_report::notes;
use memlode_whatif::advise::{Budget, Effort};
use pyo3::create_exception;
use pyo3::exceptions::{PyAttributeError, PyException, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::results::{NoTable, Results, interruptible};
use crate::table::ResultTable;

/// The time between two checks whether the user has pressed Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(50);

create_exception!(memlode, Error, PyException, "A trace or a machine cannot be used; the text says why.");
create_exception!(memlode, NotMade, Error, "An analysis makes this table with arguments only.");

fn error(why: impl ToString) -> PyErr {
    Error::new_err(why.to_string())
}

/// Opens the trace directory that `memlode run` or `memlode record` made.
#[pyfunction]
fn open(py: Python<'_>, path: PathBuf) -> PyResult<Trace> {
    let trace = py.detach(|| memlode_trace::Trace::open(&path)).map_err(error)?;
    Ok(Trace { trace: Arc::new(trace), results: Results::default() })
}

/// The machines that are known by name, besides `host`.
#[pyfunction]
fn machines() -> Vec<&'static str> {
    memlode_machine::names().collect()
}

/// A recorded trace.
#[pyclass(frozen, module = "memlode")]
struct Trace {
    trace: Arc<memlode_trace::Trace>,
    results: Results,
}

#[pymethods]
impl Trace {
    /// Replays the trace through the caches of `machine`: `host`, a name, or a .toml file.
    ///
    /// Gives every access with its names and the level that served it (`what="hits"`), or also why
    /// each level missed (`what="causes"`, with pages of `page_bytes`). `thread`, `levels`,
    /// `misses_only` and `limit` choose some; all are simulated. docs/replay.md lists the columns.
    #[pyo3(signature = (what = "hits", machine = "host", *, thread = None, levels = None, misses_only = false, limit = None, page_bytes = None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn annotate(
        &self,
        py: Python<'_>,
        what: &str,
        machine: &str,
        thread: Option<String>,
        levels: Option<Vec<String>>,
        misses_only: bool,
        limit: Option<u64>,
        page_bytes: Option<u64>,
    ) -> PyResult<Annotated> {
        let machine = Machine::find(machine).map_err(error)?;
        let pages = Pages::of(page_bytes.unwrap_or(machine.page_bytes));
        let causes = match what {
            "hits" if page_bytes.is_some() => {
                return Err(error(
                    "a page size is for causes only: whether an access hits does not depend on pages",
                ));
            }
            "hits" => None,
            "causes" => Some(Setup { pages, ..Setup::of(&machine) }),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "an access can be annotated with 'hits' or 'causes', not '{what}'"
                )));
            }
        };
        let request = ExportRequest {
            causes,
            thread,
            levels: levels.unwrap_or_default(),
            misses_only,
            limit,
            ..ExportRequest::default()
        };
        py.detach(|| {
            let (annotations, encoder) = request::start(&self.trace, &machine, &request).map_err(error)?;
            let fields = Arc::new(encoder.schema());
            let running = Running { trace: self.trace.clone(), annotations, encoder, part: None };
            Ok(Annotated { fields, running: Mutex::new(Some(running)) })
        })
    }

    /// Names of the tables that [`Trace::table`] makes.
    #[getter]
    fn tables(&self) -> Vec<&'static str> {
        results::names()
    }

    /// A table of results: `lines`, `members`, `types`, …, as `memlode export` has them, of a replay through the caches
    /// of `machine`. docs/export.md lists the columns. A report that is kept beside the trace is read; else it is
    /// made, and kept.
    #[pyo3(signature = (name, machine = "host"))]
    fn table(&self, py: Python<'_>, name: &str, machine: &str) -> PyResult<ResultTable> {
        let mut asides = Vec::new();
        let made =
            interruptible(py, |stop| self.results.table(&self.trace, machine, name, (stop, &mut asides)))?;
        for aside in asides {
            let text = CString::new(aside.replace('\0', "")).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
        }
        made.map(ResultTable::of).map_err(|why| match why {
            NoTable::Failed(why) => error(why),
            NoTable::NotMade(why) => NotMade::new_err(why),
        })
    }

    /// A table by its name, for the host: `trace.lines`.
    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<ResultTable> {
        if !results::names().contains(&name) {
            return Err(PyAttributeError::new_err(format!(
                "a trace has neither an attribute nor a table `{name}`"
            )));
        }
        self.table(py, name, "host")
    }

    /// Queries the tables, and `accesses` with every access, by DuckDB, which has to be installed.
    /// Returns its relation, which has `df()`, `pl()`, `fetchall()` and the like.
    #[pyo3(signature = (query, machine = "host"))]
    fn sql<'py>(this: &Bound<'py, Self>, query: &str, machine: &str) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("memlode.query")?.call_method1("sql", (this, query, machine))
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("memlode.frames")?.call_method1("trace_html", (this,))
    }

    /// The directory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.trace.directory().to_path_buf()
    }

    /// Tries layouts of the data that the program waits for, as `memlode advise` does, and returns what that prints with `--json`.
    ///
    /// `found(edit, gain)` is called with edits that are worth it as soon as they are found. Ctrl-C ends the search, and so does
    /// what `found` raises. Blocks are placed by a model of glibc's `malloc`.
    #[pyo3(signature = (machine = "host", *, types = 3, budget = None, found = None))]
    fn advise<'py>(
        &self,
        py: Python<'py>,
        machine: &str,
        types: usize,
        budget: Option<u64>,
        found: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let machine = Machine::find(machine).map_err(error)?;
        let effort = Effort { types, budget: budget.map_or(Budget::Usual, Budget::Reports) };
        let text = advise::run(py, &self.trace, machine, effort, found.as_ref())?;
        py.import("json")?.call_method1("loads", (text,))
    }

    /// The command that was recorded.
    #[getter]
    fn command(&self) -> Vec<String> {
        self.trace.manifest().info.command.clone()
    }

    /// Returns the missing parts of the trace, a sentence each; empty if it is whole.
    #[getter]
    fn notes(&self) -> Vec<String> {
        notes::sentences(&self.trace, None)
    }

    fn __repr__(&self) -> String {
        format!("memlode.open({:?})", self.trace.directory().display().to_string())
    }
}

/// A replay under way.
struct Running {
    trace: Arc<memlode_trace::Trace>,
    annotations: Annotations,
    encoder: BatchEncoder,
    /// The columns that are known, if it is a part of the trace.
    part: Option<Vec<bool>>,
}

/// The result of a moment's wait for a batch.
enum Waited {
    Batch(Arc<ArrowTable>),
    Nothing,
    End,
}

/// Waits for a batch, for a moment. At the end, that nothing could be decoded is an error.
fn wait(running: &Mutex<Option<Running>>) -> Result<Waited, String> {
    let mut place = running.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(running) = place.as_mut() else { return Ok(Waited::End) };
    match running.annotations.next_within(PATIENCE) {
        Next::Batch(events) => {
            // The columns are the consumer's from here on: there is no memory to use again but that of the rest.
            let mut table = ArrowTable::default();
            let back = running.encoder.encode(*events, running.annotations.cells(), &mut table);
            running.annotations.give_back(back);
            if let Some(known) = &running.part {
                let mut known = known.iter();
                table.columns.retain(|_| known.next().is_none_or(|known| *known));
            }
            Ok(Waited::Batch(Arc::new(table)))
        }
        Next::Later => Ok(Waited::Nothing),
        Next::End => {
            let Some(Running { trace, annotations, part, .. }) = place.take() else {
                return Ok(Waited::End);
            };
            let nothing = notes::nothing_decoded(&trace, &annotations.finish());
            // A part may have nothing.
            nothing.filter(|_| part.is_none()).map_or(Ok(Waited::End), Err)
        }
    }
}

/// Accesses in replay order, as record batches. It can be iterated once: with `for`, or by a
/// consumer of Arrow streams.
#[pyclass(frozen, module = "memlode")]
struct Annotated {
    fields: Arc<Vec<Field>>,
    running: Mutex<Option<Running>>,
}

#[pymethods]
impl Annotated {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        loop {
            match py.detach(|| wait(&self.running)).map_err(error)? {
                Waited::Batch(table) => {
                    return Ok(Some(RecordBatch { fields: self.fields.clone(), table }));
                }
                Waited::Nothing => py.check_signals()?,
                Waited::End => return Ok(None),
            }
        }
    }

    /// The schema, by the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsules::schema_capsule(py, &self.fields)
    }

    /// Returns the remaining batches, by the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets producers ignore it.
        let _ = requested_schema;
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if running.is_none() {
            let why = "these accesses have been gone through: annotate the trace again";
            return Err(PyValueError::new_err(why));
        }
        let running = Mutex::new(running);
        let next = move || loop {
            match wait(&running)? {
                Waited::Batch(table) => return Ok(Some(table)),
                Waited::Nothing => {}
                Waited::End => return Ok(None),
            }
        };
        capsules::stream_capsule(py, self.fields.to_vec(), Box::new(next))
    }
}

/// Some accesses: columns of equal length, which others take by the Arrow PyCapsule interface, as in `pyarrow.record_batch(batch)`.
#[pyclass(frozen, module = "memlode")]
struct RecordBatch {
    fields: Arc<Vec<Field>>,
    table: Arc<ArrowTable>,
}

#[pymethods]
impl RecordBatch {
    /// Number of accesses.
    #[getter]
    fn num_rows(&self) -> usize {
        self.table.rows
    }

    fn __len__(&self) -> usize {
        self.table.rows
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.fields.iter().map(|field| field.name.clone()).collect()
    }

    /// The schema, by the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsules::schema_capsule(py, &self.fields)
    }

    /// Schema and columns, by the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The interface lets producers ignore it.
        let _ = requested_schema;
        Ok((capsules::schema_capsule(py, &self.fields)?, capsules::array_capsule(py, &self.table)?))
    }

    fn __repr__(&self) -> String {
        format!("<memlode.RecordBatch of {} accesses>", self.table.rows)
    }
}

/// Every memory access of a recorded program, with its names and the cache level that served it.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<Error>())?;
    module.add("NotMade", module.py().get_type::<NotMade>())?;
    module.add_class::<Trace>()?;
    module.add_class::<Annotated>()?;
    module.add_class::<RecordBatch>()?;
    module.add_class::<ResultTable>()?;
    module.add_class::<parts::Task>()?;
    module.add_function(wrap_pyfunction!(parts::plan, module)?)?;
    module.add_function(wrap_pyfunction!(parts::plan_rows, module)?)?;
    module.add_function(wrap_pyfunction!(parts::_finish, module)?)?;
    module.add_function(wrap_pyfunction!(parts::_index, module)?)?;
    module.add_function(wrap_pyfunction!(parts::_peak_memory, module)?)?;
    module.add_function(wrap_pyfunction!(open, module)?)?;
    module.add_function(wrap_pyfunction!(machines, module)?)
}
