//! The schema of what commands print with `--json`: from the types that are printed, and their doc comments, to a page
//! and a JSON Schema.
//!
//! The types are read as text, as serde's attributes have them, so that nothing has to be built first.
//! `tests/python/json_schema.py` holds the schema against what is printed.

mod page;
mod schema;
mod types;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::prose;
use types::Types;

/// The file with the documents: a structure each.
const DOCUMENTS: &str = "crates/report/src/render/json.rs";

/// Folders of the types that documents hold. A name of an earlier one comes first.
const FOLDERS: [&str; 6] = [
    "crates/report/src/model",
    "crates/whatif/src",
    "crates/whatif/src/advise",
    "crates/attribute/src/read/cost",
    "crates/trace/src",
    "crates/machine/src",
];

/// A printed document.
struct Document {
    /// Its `format`.
    format: &'static str,
    /// The command.
    command: &'static str,
    /// The type, as Rust has it.
    ty: &'static str,
}

/// All of them, in the order of the page.
const ALL: [Document; 8] = [
    Document { format: "memlode report", command: "report", ty: "ReportDocument" },
    Document { format: "memlode sim", command: "sim", ty: "SimulationDocument" },
    Document { format: "memlode sim --time", command: "sim --time", ty: "TimingDocument" },
    Document {
        format: "memlode analysis",
        command: "replay --analyse`, `timeline`, `alias",
        ty: "AnalysisDocument",
    },
    Document { format: "memlode annotate", command: "annotate", ty: "ListingDocument" },
    Document { format: "memlode diff", command: "diff", ty: "ComparisonDocument<Comparison>" },
    Document { format: "memlode whatif", command: "whatif", ty: "ComparisonDocument<WhatIf>" },
    Document { format: "memlode advise", command: "advise", ty: "ComparisonDocument<Advice>" },
];

/// The page and the schema, with their paths.
pub fn expand(root: &Path) -> Result<Vec<(String, String)>> {
    let mut types = Types::default();
    types.read(&root.join(DOCUMENTS))?;
    for folder in FOLDERS {
        let mut files: Vec<PathBuf> = fs::read_dir(root.join(folder))
            .with_context(|| format!("cannot read {folder}"))?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|ending| ending == "rs"));
        files.sort();
        files.iter().try_for_each(|file| types.read(file))?;
    }
    let documents = ALL
        .iter()
        .map(|document| Ok((document, types.shape_of(document.ty)?)))
        .collect::<Result<Vec<_>>>()?;
    let definitions = types.definitions(documents.iter().map(|(_, shape)| shape))?;
    Ok(vec![
        ("docs/json.md".to_string(), prose::wrapped(&page::page(&documents, &definitions))),
        ("docs/json.schema.json".to_string(), schema::schema(&documents, &definitions)?),
    ])
}
