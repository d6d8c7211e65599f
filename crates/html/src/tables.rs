//! Tables of analyses, of times and of changes, with the names of what their rows are about.

use memlode_report::build::{Limit, Rest};
use memlode_report::render::page::{data_name, home_name, object_name, place_name, short};
use memlode_report::{NamedAccess, NamedComparison, NamedTable, NamedValue, PageRows, TimeReport};
use serde_json::{Map, json};

/// Rows of a table that are kept, where the most important come first.
const MOST: usize = 500;

/// Tables of which pictures have the rows in a form of their own.
const DRAWN_OTHERWISE: [&str; 6] =
    ["contexts", "ranges", "ranges_over_time", "heap", "heap_over_time", "heap_peak"];

/// The rows that a page has of such a table, if they do not belong together.
pub const LIMIT: Limit = Limit::Rows { most: MOST, rest: Rest::Counted };

/// The tables of analyses of every access.
pub fn analysed(found: &PageRows) -> serde_json::Value {
    let is_drawn_otherwise = |table: &&NamedTable| DRAWN_OTHERWISE.contains(&&*table.id);
    let tables = found.analysis.tables.iter().filter(|table| !is_drawn_otherwise(table));
    tables.map(|of| table(of, found.left_out(&of.id).map_or(0, |left| left.rows))).collect()
}

fn table(table: &NamedTable, left_out: usize) -> serde_json::Value {
    let row = |row: &Vec<NamedValue>| {
        let members = table.columns.iter().zip(row).map(|(column, found)| (column.id.clone(), value(found)));
        serde_json::Value::Object(Map::from_iter(members))
    };
    json!({
        "id": table.id,
        "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
        "left_out": left_out,
    })
}

/// A value; what has a name comes with it.
fn value(value: &NamedValue) -> serde_json::Value {
    match value {
        NamedValue::Data(data) => json!({ "name": data_name(data), "type": data.ty, "member": data.member }),
        NamedValue::Position(position) => json!({
            "name": place_name(position),
            "linkage_name": position.linkage_name,
            "line": position.line,
        }),
        NamedValue::Home(home) => json!({ "name": home_name(home) }),
        NamedValue::Stack(lines) => {
            let lines: Vec<String> = lines.iter().map(|line| place_name(&line.position)).collect();
            json!({ "name": lines.join(" ← ") })
        }
        NamedValue::Count(number) | NamedValue::Bytes(number) => json!(number),
        NamedValue::Step(step) => json!(step),
        NamedValue::Seconds(number) | NamedValue::Share(number) => json!(number),
        NamedValue::Text(text) => json!(text),
        NamedValue::Word(word) => json!(word),
        // Distances one by one are more than a page draws.
        NamedValue::Nothing | NamedValue::Histogram(_) | NamedValue::Bins(_) | NamedValue::Threads(_) => {
            serde_json::Value::Null
        }
    }
}

/// Leaves out the rows of times that matter least.
pub fn cut_timing(found: &mut TimeReport) {
    found.lines.truncate(MOST);
    found.data.clear();
    found.fields.truncate(MOST);
    found.types.truncate(MOST);
    found.objects.truncate(MOST);
    found.functions.truncate(MOST);
    found.threads.truncate(MOST);
}

/// Names of the rows of times.
pub fn timing_names(found: &TimeReport) -> serde_json::Value {
    json!({
        "lines": found.lines.iter().map(|row| access(&row.subject)).collect::<Vec<_>>(),
        "fields": found.fields.iter().map(|row| data_name(&row.subject)).collect::<Vec<_>>(),
        "objects": found.objects.iter().map(|row| object_name(&row.subject)).collect::<Vec<_>>(),
        "functions": found.functions.iter().map(|row| short(&row.subject.function)).collect::<Vec<_>>(),
    })
}

/// Leaves out the changes that matter least.
pub fn cut_comparison(found: &mut NamedComparison) {
    found.data.truncate(MOST);
    found.lines.truncate(MOST);
    found.objects.truncate(MOST);
    found.types.truncate(MOST);
}

/// Names of the rows of changes.
pub fn comparison_names(found: &NamedComparison) -> serde_json::Value {
    json!({
        "data": found.data.iter().map(|row| data_name(&row.subject)).collect::<Vec<_>>(),
        "lines": found.lines.iter().map(|row| access(&row.subject)).collect::<Vec<_>>(),
        "objects": found.objects.iter().map(|row| object_name(&row.subject)).collect::<Vec<_>>(),
        "types": found.types.iter().map(|row| short(&row.subject.name)).collect::<Vec<_>>(),
    })
}

fn access(NamedAccess { data, position }: &NamedAccess) -> String {
    format!("{} at {}", data_name(data), place_name(position))
}

#[cfg(test)]
mod tests {
    use memlode_report::{Data, Position};

    use super::*;

    #[test]
    fn what_has_a_name_comes_with_it() {
        let data = Data { ty: Some("arc".into()), member: Some("cost".into()), variable: None };
        let line = Position { line: Some(7), linkage_name: "main".into(), ..Position::default() };
        assert_eq!(value(&NamedValue::Data(data))["name"], "arc.cost");
        assert_eq!(value(&NamedValue::Position(line))["line"], 7);
        assert_eq!(value(&NamedValue::Bytes(64)), 64);
        assert_eq!(value(&NamedValue::Nothing), serde_json::Value::Null);
    }
}
