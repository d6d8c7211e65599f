//! A table of results in Python.

use std::sync::Arc;

use memlode_export::formats::csv;
use memlode_export::tables::ExportedTable;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::{capsules, error};

/// A table of results: columns of equal length, which others take by the Arrow PyCapsule interface, as often as they like.
#[pyclass(frozen, module = "memlode")]
pub struct ResultTable {
    found: Arc<ExportedTable>,
}

impl ResultTable {
    pub fn of(found: Arc<ExportedTable>) -> ResultTable {
        ResultTable { found }
    }
}

/// Calls a function of the package's part in Python on a table.
fn shown<'py>(table: &Bound<'py, ResultTable>, function: &str) -> PyResult<Bound<'py, PyAny>> {
    table.py().import("memlode.frames")?.call_method1(function, (table,))
}

#[pymethods]
impl ResultTable {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.found.name
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.found.table.rows
    }

    fn __len__(&self) -> usize {
        self.found.table.rows
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.found.fields.iter().map(|field| &field.name[..]).collect()
    }

    /// The table as a `pyarrow.Table`.
    fn arrow<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        shown(this, "arrow")
    }

    /// The table as a `pandas.DataFrame`; names are categories.
    fn pandas<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        shown(this, "pandas")
    }

    /// The table as a `polars.DataFrame`.
    fn polars<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        shown(this, "polars")
    }

    /// The table as comma-separated values, as `memlode export` writes them.
    fn csv(&self) -> PyResult<String> {
        let mut text = Vec::new();
        csv::write(&mut text, &self.found).map_err(error)?;
        String::from_utf8(text).map_err(error)
    }

    /// The schema, by the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsules::schema_capsule(py, &self.found.fields)
    }

    /// All rows, by the Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets producers ignore it.
        let _ = requested_schema;
        let mut rows = Some(Arc::new(self.found.table.clone()));
        capsules::stream_capsule(py, self.found.fields.clone(), Box::new(move || Ok(rows.take())))
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        shown(this, "html")
    }

    fn __repr__(&self) -> String {
        format!("<memlode.ResultTable {}: {} rows>", self.found.name, self.found.table.rows)
    }
}
