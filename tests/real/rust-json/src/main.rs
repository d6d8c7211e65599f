//! serde_json at work, with all it depends on: a document is made, written, parsed, changed and written again.

use serde_json::{Map, Value, json};

fn document(records: u64) -> Value {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let record = |id| {
        let tags: Vec<String> =
            (0..next() % 5).map(|tag| format!("tag \"{tag}\" é {}", next() % 97)).collect();
        json!({
            "id": id,
            "name": format!("record {}", next() % 1000),
            "size": { "width": next() % 512, "height": (next() % 512) as f64 / 8.0 },
            "tags": tags,
            "parent": if id % 3 == 0 { Value::Null } else { json!(next() % id) },
            "open": next() % 2 == 0,
        })
    };
    json!({ "version": 3, "records": (1..=records).map(record).collect::<Vec<_>>() })
}

/// (nodes, text bytes, sum of numbers)
fn measure(value: &Value) -> (u64, u64, f64) {
    let add = |a: (u64, u64, f64), b: (u64, u64, f64)| (a.0 + b.0, a.1 + b.1, a.2 + b.2);
    match value {
        Value::Null | Value::Bool(_) => (1, 0, 0.0),
        Value::Number(number) => (1, 0, number.as_f64().unwrap_or(0.0)),
        Value::String(text) => (1, text.len() as u64, 0.0),
        Value::Array(items) => items.iter().map(measure).fold((1, 0, 0.0), add),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| add((0, key.len() as u64, 0.0), measure(value)))
            .fold((1, 0, 0.0), add),
    }
}

fn index(document: &Value) -> Map<String, Value> {
    let mut index = Map::new();
    for record in document["records"].as_array().into_iter().flatten() {
        let name = record["name"].as_str().unwrap_or_default();
        let ids = index.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(ids) = ids {
            ids.push(record["id"].clone());
        }
    }
    index
}

fn main() {
    let text = document(6000).to_string();
    let mut parsed: Value = serde_json::from_str(&text).expect("what was written is JSON");
    println!("{} bytes {:?}", text.len(), measure(&parsed));
    for record in parsed["records"].as_array_mut().into_iter().flatten() {
        record["size"]["area"] = json!(record["size"]["width"].as_u64().unwrap_or(0) * 2);
        if let Value::Object(record) = record {
            record.remove("open");
        }
    }
    let index = index(&parsed);
    println!("{} names, {:?}", index.len(), index.get("record 77"));
    let pretty = serde_json::to_string_pretty(&parsed).expect("a value can be written");
    println!(
        "{} bytes, {:x}",
        pretty.len(),
        pretty.bytes().fold(0u32, |h, b| h.rotate_left(5) ^ u32::from(b))
    );
}
