//! Paths in a trace directory.

pub(crate) const EVENTS: &str = "events.ndjson";
pub(crate) const INDEX: &str = "chunks.mlx";
pub(crate) const THREADS: &str = "threads";
pub(crate) const MODULES: &str = "modules";

pub(crate) fn thread(process: u32, thread: u32) -> String {
    format!("{THREADS}/p{process:04}-t{thread:04}.mlt")
}

pub(crate) fn module(module: u32) -> String {
    format!("{MODULES}/{module:04}.mlm")
}
