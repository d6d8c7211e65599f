//! A trace in parts: plans, tasks that can be pickled, and their results, put together.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use memlode_analyses::parts::{self, Cut, Prepared};
use memlode_analyses::{BadArgument, BadPart};
use memlode_export::{ExportRequest, request};

use memlode_report::{build, render};
use memlode_trace::format::{ChunkHeader, magic};
use memlode_trace::{ChunkRef, Trace};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

use crate::hot_cold::hot_cold;
use crate::{Annotated, Running, error};

/// Columns that depend on accesses before a chunk.
const UNKNOWN_IN_CHUNKS: [&str; 5] = ["sequence", "level", "cycles", "object_kind", "object"];

/// One part of a trace, and the analyses that look at it. It is small, and can be pickled and run anywhere where the trace is.
#[pyclass(frozen, module = "memlode")]
pub struct Task {
    task: parts::Task,
}

#[pymethods]
impl Task {
    /// Runs the task, and returns its results, for `finish`. A stretch reads and keeps `tables` beside
    /// the trace, of what parts need of the accesses before them.
    #[pyo3(signature = (*, tables = true))]
    fn run<'py>(&self, py: Python<'py>, tables: bool) -> PyResult<Bound<'py, PyBytes>> {
        let tables = |trace: &Trace| memlode_results::tables(trace).filter(|_| tables);
        let found = py.detach(|| self.task.run(tables)).map_err(error)?;
        Ok(PyBytes::new(py, &found))
    }

    /// The accesses of the part, as `Trace.annotate`. Those of a part of chunks have no level, object and number.
    #[pyo3(signature = (*, misses_only = false))]
    fn annotate(&self, py: Python<'_>, misses_only: bool) -> PyResult<Annotated> {
        if self.task.cut == Cut::Chunks && misses_only {
            return Err(error("misses are known by what came before: cut the trace into stretches"));
        }
        py.detach(|| rows(self.task.prepare().map_err(error)?, self.task.cut, misses_only))
    }

    /// Rows of members of live structures, as JSON, of all of the trace.
    fn _hot_cold(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.task.prepare().and_then(hot_cold)).map_err(error)
    }

    /// The columns of `annotate`, and the accesses of one chunk. A copy of the trace that has the
    /// chunks' headers alone has columns, too.
    fn _columns(&self, py: Python<'_>) -> PyResult<Annotated> {
        py.detach(|| {
            let whole = parts::Task { part: 0, parts: 1, ..self.task.clone() };
            let mut prepared = whole.prepare().map_err(error)?;
            if let Some(trace) = Arc::get_mut(&mut prepared.trace) {
                let first = trace.chunks().iter().position(|chunk| chunk.accesses() > 0).unwrap_or(0);
                trace.keep_chunks(first..first + 1);
            }
            rows(prepared, whole.cut, false)
        })
    }

    /// The way in which the trace is cut: chunks, stretches, lines, threads, or whole.
    #[getter]
    fn cut(&self) -> &'static str {
        self.task.cut.word()
    }

    /// Which part this is, from 0.
    #[getter]
    fn part(&self) -> u32 {
        self.task.part
    }

    /// Number of parts.
    #[getter]
    fn parts(&self) -> u32 {
        self.task.parts
    }

    /// The analyses that look at it, with their arguments.
    #[getter]
    fn analyses(&self) -> Vec<&str> {
        self.task.questions.iter().map(|(_, question)| question.as_str()).collect()
    }

    /// Returns this task for a copy of the trace at another path.
    fn _at(&self, path: String) -> Task {
        Task { task: parts::Task { trace: path, ..self.task.clone() } }
    }

    /// The chunks that the task reads, each by its process, its thread there, and its number in that.
    /// A copy of the trace at `path` needs to have their headers alone.
    fn _chunks(&self, py: Python<'_>, path: PathBuf) -> PyResult<Vec<(u32, u32, u32)>> {
        let trace = py.detach(|| memlode_trace::Trace::open(&path)).map_err(error)?;
        let name = |chunk: &ChunkRef| {
            let thread = &trace.threads()[chunk.thread.0 as usize];
            (thread.process.0, thread.index, chunk.sequence())
        };
        Ok(self.task.chunks(&trace).iter().map(name).collect())
    }

    /// Reads a pickled task.
    #[classmethod]
    fn _read(_class: &Bound<'_, PyType>, text: &str) -> PyResult<Task> {
        let task = serde_json::from_str(text).map_err(|why| PyValueError::new_err(why.to_string()))?;
        Ok(Task { task })
    }

    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let text = serde_json::to_string(&this.get().task);
        let text = text.map_err(|why| PyValueError::new_err(why.to_string()))?;
        Ok((this.get_type().getattr("_read")?, (text,)))
    }

    fn __repr__(&self) -> String {
        let parts::Task { cut, part, parts, .. } = self.task;
        let analyses = self.analyses().join(", ");
        format!("<memlode.Task {part} of {parts} by {}: {analyses}>", cut.word())
    }
}

/// Begins to replay a part for its rows.
fn rows(prepared: Prepared, cut: Cut, misses_only: bool) -> PyResult<Annotated> {
    let without_caches = cut == Cut::Chunks;
    let stretch = Some(prepared.stretch);
    let request = ExportRequest { misses_only, stretch, without_caches, ..ExportRequest::default() };
    let trace = prepared.trace;
    let (annotations, encoder) = request::start(&trace, &prepared.machine, &request).map_err(error)?;
    let mut fields = encoder.schema();
    let is_known = |name: &str| !(without_caches && UNKNOWN_IN_CHUNKS.contains(&name));
    let part = Some(fields.iter().map(|field| is_known(&field.name)).collect());
    fields.retain(|field| is_known(&field.name));
    let running = Mutex::new(Some(Running { trace, annotations, encoder, part }));
    Ok(Annotated { fields: Arc::new(fields), running })
}

fn tasks(planned: Result<Vec<parts::Task>, BadArgument>) -> PyResult<Vec<Task>> {
    let planned = planned.map_err(|BadArgument(why)| error(why))?;
    Ok(planned.into_iter().map(|task| Task { task }).collect())
}

/// Cuts a trace into `parts` for some analyses of every access, each by its name and arguments as
/// in `memlode replay --analyse`. Analyses that cannot be cut are one task.
#[pyfunction]
#[pyo3(signature = (path, analyses, parts, machine = "host"))]
pub fn plan(
    py: Python<'_>,
    path: PathBuf,
    analyses: Vec<String>,
    parts: u32,
    machine: &str,
) -> PyResult<Vec<Task>> {
    py.detach(|| {
        memlode_machine::Machine::find(machine).map_err(error)?;
        let trace = memlode_trace::Trace::open(&path).map_err(error)?;
        tasks(parts::plan(&trace, machine, &analyses, parts))
    })
}

/// Cuts a trace into `parts` for code that reads the accesses itself: into `chunks`, which know
/// neither levels nor objects nor order; into `stretches` of replay order; or not at all (`whole`).
#[pyfunction]
#[pyo3(signature = (path, cut, parts, machine = "host"))]
pub fn plan_rows(py: Python<'_>, path: PathBuf, cut: &str, parts: u32, machine: &str) -> PyResult<Vec<Task>> {
    let cuts = [Cut::Chunks, Cut::Stretches, Cut::Whole];
    let Some(cut) = cuts.into_iter().find(|known| known.word() == cut) else {
        let words = cuts.map(Cut::word).join(", ");
        return Err(PyValueError::new_err(format!("a trace can be cut into {words}, not `{cut}`")));
    };
    py.detach(|| {
        memlode_machine::Machine::find(machine).map_err(error)?;
        let trace = memlode_trace::Trace::open(&path).map_err(error)?;
        tasks(parts::plan_rows(&trace, machine, cut, parts))
    })
}

/// Reads a trace's index, in the order of the chunks in their threads' files: process, thread, number
/// there, and bytes with the header, which is as long as an entry of the index.
#[pyfunction]
pub fn _index(index: &[u8]) -> PyResult<Vec<(u32, u32, u32, u64)>> {
    let (headers, rest) = index.as_chunks::<{ ChunkHeader::BYTES }>();
    let headers: Vec<ChunkHeader> = headers.iter().map(ChunkHeader::from_bytes).collect();
    if !rest.is_empty() || headers.iter().any(|header| header.magic != magic::CHUNK) {
        return Err(error("the index of chunks is damaged"));
    }
    let bytes = |header: &ChunkHeader| ChunkHeader::BYTES as u64 + u64::from(header.payload_bytes);
    let entry = |header: &ChunkHeader| (header.process, header.thread, header.sequence, bytes(header));
    Ok(headers.iter().map(entry).collect())
}

/// Puts together the results of all tasks of a plan; as JSON, that of
/// `memlode replay --analyse --json`, and the peak memory of the largest process that ran a task.
#[pyfunction]
#[pyo3(signature = (results, path = None))]
pub fn _finish(
    py: Python<'_>,
    results: Vec<Vec<u8>>,
    path: Option<PathBuf>,
) -> PyResult<(String, Option<u64>)> {
    py.detach(|| {
        let results: Vec<&[u8]> = results.iter().map(Vec::as_slice).collect();
        let finished = parts::finish(&results, path).map_err(|bad: BadPart| error(bad))?;
        let peak = finished.peak_bytes;
        let analysis = build::analysis_in_parts(finished).map_err(error)?;
        Ok((render::json::analysis(&analysis).map_err(error)?, peak))
    })
}

/// Words on the peak memory of this process, as `memlode --memory` tells them.
#[pyfunction]
pub fn _peak_memory() -> String {
    render::peak_memory(parts::peak_memory(), None)
}
