//! Names of the rows of a report, in the words of every other output.

use memlode_report::Report;
use memlode_report::render::page::{data_name, home_name, object_name, place_name, short};
use serde::Serialize;

/// Names, each table's in the order of its rows.
#[derive(Serialize)]
pub struct Names {
    lines: Vec<[String; 2]>,
    data: Vec<String>,
    fields: Vec<String>,
    types: Vec<String>,
    objects: Vec<String>,
    functions: Vec<String>,
    threads: Vec<String>,
    false_sharing: Vec<Transfer>,
    true_sharing: Vec<Transfer>,
    handed_over: Vec<Transfer>,
    cache_lines: Vec<String>,
    locks: Vec<[String; 2]>,
}

/// Names of two accesses that take lines from each other.
#[derive(Serialize)]
struct Transfer {
    object: String,
    missed: [String; 2],
    written: Option<[String; 2]>,
}

/// Finds the names.
pub fn names(report: &Report) -> Names {
    let sharing = report.sharing.as_ref();
    let thread = |row: &memlode_report::Row<_>| {
        let memlode_report::NamedThread { thread, pid, tid, .. } = row.subject;
        match report.trace.processes {
            0 | 1 => format!("thread {thread} (tid {tid})"),
            _ => format!("thread {thread} (process {pid}, tid {tid})"),
        }
    };
    let stack = |thread: u32| format!("the stack of thread {thread}");
    let transfers = |rows: &[memlode_report::SharedData]| {
        let side =
            |side: &memlode_report::Side| [data_name(&side.access.data), place_name(&side.access.position)];
        let name = |row: &memlode_report::SharedData| Transfer {
            object: row.stack_of.map_or_else(|| object_name(&row.object), stack),
            missed: side(&row.missed),
            written: row.written.as_ref().map(side),
        };
        rows.iter().map(name).collect()
    };
    Names {
        lines: report
            .lines
            .iter()
            .map(|row| [data_name(&row.subject.data), place_name(&row.subject.position)])
            .collect(),
        data: report.data.iter().map(|row| data_name(&row.subject)).collect(),
        fields: report.fields.iter().map(|row| data_name(&row.subject)).collect(),
        types: report.types.iter().map(|row| short(&row.subject.name)).collect(),
        objects: report.objects.iter().map(|row| home_name(&row.subject.home)).collect(),
        functions: report.functions.iter().map(|row| short(&row.subject.function)).collect(),
        threads: report.threads.iter().map(thread).collect(),
        false_sharing: sharing.map(|found| transfers(&found.false_sharing)).unwrap_or_default(),
        true_sharing: sharing.map(|found| transfers(&found.true_sharing)).unwrap_or_default(),
        handed_over: sharing.map(|found| transfers(&found.handed_over)).unwrap_or_default(),
        locks: sharing
            .iter()
            .flat_map(|found| &found.locks)
            .map(|row| {
                let taken = row.access.as_ref().map(|access| place_name(&access.position));
                [object_name(&row.object), taken.unwrap_or_default()]
            })
            .collect(),
        cache_lines: sharing
            .map(|found| {
                let name = |row: &memlode_report::NamedSharedLine| {
                    row.stack_of.map_or_else(|| object_name(&row.object), stack)
                };
                found.cache_lines.iter().map(name).collect()
            })
            .unwrap_or_default(),
    }
}
