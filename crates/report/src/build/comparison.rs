//! Two reports, aligned by name: lines that moved and files that were renamed are the same lines.

use std::collections::BTreeMap;

use crate::model::{
    Access, Change, Compared, Comparison, Data, Home, Numbers, Object, Report, Row, Status, Type,
};

/// Aligns two reports. `run_cycles` are those of each; `noise` is the part of them that placement alone changes.
pub fn comparison(before: &Report, after: &Report, run_cycles: [f64; 2], noise: Option<f64>) -> Comparison {
    let least = noise.unwrap_or(0.0) * run_cycles[0];
    Comparison {
        before: compared(before, run_cycles[0]),
        after: compared(after, run_cycles[1]),
        noise,
        data: changes(&before.data, &after.data, data_key, least),
        lines: changes(&before.lines, &after.lines, line_key, least),
        objects: changes(&before.objects, &after.objects, object_key, least),
        types: changes(&before.types, &after.types, type_key, least),
    }
}

fn compared(report: &Report, run_cycles: f64) -> Compared {
    Compared {
        trace: report.trace.directory.clone(),
        machine: report.machine.name.clone(),
        total: report.total.numbers.clone(),
        run_cycles,
        levels: report.machine.levels.clone(),
    }
}

/// What a row is called in both, and what tells rows of that name apart by their order.
type Key = (Vec<String>, u32);

fn data_key(data: &Data) -> Key {
    let part = |name: &Option<String>| name.clone().unwrap_or_default();
    (vec![part(&data.ty), part(&data.member), part(&data.variable)], 0)
}

/// A line goes by its data and its function; several by their order in it.
fn line_key(access: &Access) -> Key {
    let (mut names, _) = data_key(&access.data);
    names.push(access.position.linkage_name.clone());
    names.extend(access.position.inlined_into.as_ref().map(|outer| outer.linkage_name.clone()));
    (names, access.position.line.unwrap_or(0))
}

fn object_key(object: &Object) -> Key {
    let mut names = vec![object.element.clone().unwrap_or_default()];
    let mut line = 0;
    match &object.home {
        Home::Unknown => names.push("unknown".into()),
        Home::Heap { allocated_at, path, .. } => {
            names.push("heap".into());
            names.push(allocated_at.linkage_name.clone());
            names.extend(path.iter().cloned());
            line = allocated_at.line.unwrap_or(0);
        }
        Home::Global { symbol, .. } => names.extend(["global".into(), symbol.clone()]),
        Home::Stack { function, variable } => {
            names.extend(["stack".into(), function.clone(), variable.clone().unwrap_or_default()]);
        }
    }
    (names, line)
}

fn type_key(ty: &Type) -> Key {
    (vec![ty.name.clone()], 0)
}

fn changes<S: Clone>(
    before: &[Row<S>],
    after: &[Row<S>],
    key: impl Fn(&S) -> Key,
    least: f64,
) -> Vec<Change<S>> {
    let side = |rows: &'_ [Row<S>]| {
        let mut side: BTreeMap<Vec<String>, Vec<(u32, usize)>> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            let (names, order) = key(&row.subject);
            side.entry(names).or_default().push((order, at));
        }
        side.values_mut().for_each(|rows| rows.sort_unstable());
        side
    };
    let (mut first, second) = (side(before), side(after));
    let mut changes = Vec::new();
    for (names, rows) in second {
        let mut others = first.remove(&names).unwrap_or_default().into_iter();
        for (_, at) in rows {
            let other = others.next().map(|(_, at)| &before[at]);
            changes.push(change(other, Some(&after[at]), least));
        }
        changes.extend(others.map(|(_, at)| change(Some(&before[at]), None, least)));
    }
    changes.extend(first.into_values().flatten().map(|(_, at)| change(Some(&before[at]), None, least)));
    let mut changes: Vec<Change<S>> = changes.into_iter().flatten().collect();
    changes.sort_by_key(|change| std::cmp::Reverse(change.stall_cycles_change.unsigned_abs()));
    changes
}

fn change<S: Clone>(before: Option<&Row<S>>, after: Option<&Row<S>>, least: f64) -> Option<Change<S>> {
    let subject = after.or(before)?.subject.clone();
    let cycles = |row: Option<&Row<S>>| row.map_or(0, |row| row.numbers.stall_cycles as i64);
    let changed = cycles(after) - cycles(before);
    let status = match (before, after) {
        (None, _) => Status::New,
        (_, None) => Status::Gone,
        _ if (changed.unsigned_abs() as f64) <= least => Status::WithinNoise,
        _ if changed < 0 => Status::Better,
        _ => Status::Worse,
    };
    let numbers = |row: Option<&Row<S>>| -> Option<Numbers> { row.map(|row| row.numbers.clone()) };
    Some(Change {
        subject,
        status,
        stall_cycles_change: changed,
        before: numbers(before),
        after: numbers(after),
    })
}
