//! Figures that pages quote, from the files under `bench/results/`.
//!
//! A number is followed by a comment with its source, `1.01<!--record/geomean/dormant_ratio-->×`: the file's
//! short name, a program or `geomean`, `min` or `max` of all programs, and the column. `cargo xtask gen` writes
//! the number anew, with as many decimals as it has. A table stands between `<!-- table: NAME -->` and
//! `<!-- end of table -->`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::law::sources;

/// Short names of results files.
const FILES: &[(&str, &str)] = &[
    ("record", "record-epyc-2-cores.json"),
    ("record-zen1", "record-epyc-zen1-2-cores.json"),
    ("bursts", "bursts-granite-rapids-2-cores.json"),
    ("engine", "engine-epyc-2-cores.json"),
    ("engine-zen1", "engine-epyc-zen1-2-cores.json"),
    ("spark", "spark-granite-rapids-2-cores.json"),
];

/// A table: its name, the results file, and its columns: heading, column of the file, decimals, unit.
struct Table {
    name: &'static str,
    file: &'static str,
    columns: &'static [(&'static str, &'static str, usize, &'static str)],
}

const TABLES: &[Table] = &[
    Table {
        name: "ways",
        file: "spark",
        columns: &[("CPU seconds", "cpu_s", 1, ""), ("peak memory", "peak_mib", 0, " MiB")],
    },
    Table {
        name: "recording",
        file: "record",
        columns: &[
            ("recorded, discarded", "discard_ratio", 2, "×"),
            ("not recorded", "dormant_ratio", 2, "×"),
            ("`--burst 1%`", "burst_ratio", 2, "×"),
            ("call per access", "call_ratio", 2, "×"),
            ("Cachegrind", "cachegrind_ratio", 1, "×"),
            ("to files: program's CPU", "file_cpu_ratio", 2, "×"),
            ("to files: wall", "file_wall_ratio", 2, "×"),
            ("bytes an access", "bytes_per_access", 2, ""),
        ],
    },
    Table {
        name: "bursts",
        file: "bursts",
        columns: &[
            ("bursts", "bursts", 0, ""),
            ("of the accesses", "covered_percent", 2, "%"),
            ("line", "line_accesses_error_percent", 1, "%"),
            ("member", "member_accesses_error_percent", 1, "%"),
            ("type", "type_accesses_error_percent", 1, "%"),
            ("object", "object_accesses_error_percent", 1, "%"),
            ("function", "function_accesses_error_percent", 1, "%"),
            ("line, wait", "line_wait_error_percent", 1, "%"),
            ("member, wait", "member_wait_error_percent", 1, "%"),
            ("type, wait", "type_wait_error_percent", 1, "%"),
            ("object, wait", "object_wait_error_percent", 1, "%"),
            ("function, wait", "function_wait_error_percent", 1, "%"),
        ],
    },
    Table {
        name: "replaying",
        file: "engine-zen1",
        columns: &[
            ("decode", "decode_maccess_s", 0, ""),
            ("L1 alone", "simulate_maccess_s.0", 0, ""),
            ("L1–L2", "simulate_maccess_s.1", 0, ""),
            ("L1–L3", "simulate_maccess_s.2", 0, ""),
            ("decode, three levels, attribution", "engine_maccess_s", 0, ""),
            ("time of `sim --rules lru` over that", "causes_time_ratio", 1, ""),
            ("reuse", "reuse_maccess_s", 0, ""),
            ("two cores over one", "two_core_speedup", 2, ""),
            ("live over native, wall", "live_wall_ratio", 1, ""),
            ("Cachegrind over live", "live_over_cachegrind", 2, ""),
            ("MB at most", "peak_mb", 0, ""),
            ("MB with causes", "peak_with_causes_mb", 0, ""),
        ],
    },
];

/// The results files, read.
struct Results(Vec<(&'static str, Value)>);

impl Results {
    fn read(root: &Path) -> Result<Self> {
        let read = |&(name, file): &(&'static str, &str)| {
            let path = root.join("bench/results").join(file);
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let json = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
            Ok((name, json))
        };
        FILES.iter().map(read).collect::<Result<_>>().map(Self)
    }

    fn file(&self, name: &str) -> Result<&Value> {
        let found = self.0.iter().find(|(known, _)| *known == name);
        Ok(&found.with_context(|| format!("no results file has the short name {name}"))?.1)
    }

    /// Returns one figure; `which` is a program, `geomean`, `min` or `max`.
    fn figure(&self, file: &str, which: &str, column: &str) -> Result<f64> {
        let json = self.file(file)?;
        let of = |program: &Value| number(program, column);
        let programs = json["programs"].as_array().context("programs is no list")?;
        let found = match which {
            "geomean" => of(&json["geomean"]),
            "min" => programs.iter().filter_map(of).reduce(f64::min),
            "max" => programs.iter().filter_map(of).reduce(f64::max),
            name => programs.iter().find(|program| program["name"] == name).and_then(of),
        };
        found.with_context(|| format!("{file}/{which}/{column} is not in the results"))
    }

    fn table(&self, name: &str) -> Result<String> {
        let table = TABLES.iter().find(|table| table.name == name);
        let table = table.with_context(|| format!("no table has the name {name}"))?;
        let mut out = String::from("| program |");
        for (heading, ..) in table.columns {
            out += &format!(" {heading} |");
        }
        out += &format!("\n|---|{}\n", "---|".repeat(table.columns.len()));
        let json = self.file(table.file)?;
        for program in json["programs"].as_array().into_iter().flatten() {
            out += &row(program["name"].as_str().unwrap_or_default(), program, table);
        }
        for (key, name) in [("geomean", "**geometric mean**"), ("mean", "**mean**")] {
            if !json[key].is_null() {
                out += &row(name, &json[key], table);
            }
        }
        Ok(out)
    }
}

fn row(name: &str, values: &Value, table: &Table) -> String {
    let mut out = format!("| {name} |");
    for (_, column, decimals, unit) in table.columns {
        let cell = number(values, column).map(|value| format!(" {value:.decimals$}{unit}"));
        out += &(cell.unwrap_or_default() + " |");
    }
    out + "\n"
}

/// A member of a row; `name.1` is the second of a list.
fn number(row: &Value, column: &str) -> Option<f64> {
    let (name, index) = column.split_once('.').unwrap_or((column, ""));
    match index.parse::<usize>() {
        Ok(index) => row[name][index].as_f64(),
        Err(_) => row[name].as_f64(),
    }
}

/// Pages whose figures changed: path and text.
pub fn expand(root: &Path) -> Result<Vec<(String, String)>> {
    let results = Results::read(root)?;
    let mut pages = Vec::new();
    for path in sources(root, &["md"])? {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let fresh = quoted(&text, &results).with_context(|| shown.clone())?;
        if fresh != text {
            pages.push((shown, fresh));
        }
    }
    Ok(pages)
}

/// Returns the page with today's figures.
fn quoted(text: &str, results: &Results) -> Result<String> {
    const TABLE: &str = "<!-- table: ";
    const END: &str = "<!-- end of table -->";
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("<!--") {
        let (source, after) = comment.split_once("-->").context("a comment does not end")?;
        out += before;
        if let Some(name) = format!("<!--{source}").strip_prefix(TABLE) {
            let (_, after) =
                after.split_once(END).with_context(|| format!("table {name}: `{END}` is missing"))?;
            out += &format!("<!--{source}-->\n\n{}\n{END}", results.table(name.trim())?);
            rest = after;
            continue;
        }
        if let [file, which, column] = source.split('/').collect::<Vec<_>>()[..]
            && !source.contains(' ')
        {
            let value = results.figure(file, which, column)?;
            let digits = out.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
            let old = &out[digits..];
            ensure!(!old.is_empty(), "no number stands in front of <!--{source}-->");
            let decimals = old.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            out.truncate(digits);
            out += &format!("{value:.decimals$}");
        } else if ["record", "engine", "spark"].iter().any(|name| source.starts_with(name)) {
            bail!("<!--{source}--> is no source: FILE/PROGRAM/COLUMN");
        }
        out += &format!("<!--{source}-->");
        rest = after;
    }
    Ok(out + rest)
}

/// Pages on which every factor is a measured figure.
const QUOTING: &[&str] = &["README.md", "docs/cost.md", "docs/control.md"];

/// One sentence for each factor, `1.5×`, that stands on such a page without its source.
pub fn unsourced(root: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for page in QUOTING {
        let text = fs::read_to_string(root.join(page)).with_context(|| format!("cannot read {page}"))?;
        let lines = factors(&text);
        problems.extend(lines.map(|line| {
            format!(
                "{page}:{line}: a factor without its source; see xtask/src/figures.rs for how to quote one"
            )
        }));
    }
    Ok(problems)
}

/// The lines with a digit in front of `×`, but for generated tables.
fn factors(page: &str) -> impl Iterator<Item = usize> {
    let mut in_table = false;
    page.lines().enumerate().filter_map(move |(number, line)| {
        in_table = line.starts_with("<!-- table: ") || (in_table && !line.starts_with("<!-- end of table"));
        let bare = line.match_indices('×').any(|(at, _)| line[..at].ends_with(|c: char| c.is_ascii_digit()));
        (!in_table && bare).then_some(number + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let json = r#"{"programs": [{"name": "a", "discard_ratio": 1.256}, {"name": "b", "discard_ratio": 3}],
            "geomean": {"discard_ratio": 2.04}}"#;
        Results(vec![("record", serde_json::from_str(json).unwrap())])
    }

    #[test]
    fn numbers_keep_their_decimals() {
        let page =
            "takes 9.99<!--record/a/discard_ratio-->× and 7<!--record/max/discard_ratio--> <!-- a note -->";
        assert_eq!(
            quoted(page, &results()).unwrap(),
            "takes 1.26<!--record/a/discard_ratio-->× and 3<!--record/max/discard_ratio--> <!-- a note -->"
        );
    }

    #[test]
    fn tables_are_written_anew() {
        let page = "x\n<!-- table: recording -->\nold\n<!-- end of table -->\ny\n";
        let text = quoted(page, &results()).unwrap();
        assert!(
            text.contains("\n| a | 1.26× |") && text.contains("| **geometric mean** | 2.04× |"),
            "{text}"
        );
        assert!(!text.contains("old") && text.ends_with("<!-- end of table -->\ny\n"), "{text}");
        assert_eq!(quoted(&text, &results()).unwrap(), text, "what is fresh stays");
    }

    #[test]
    fn factors_without_a_source_are_found() {
        let page = "1.5<!--record/a/discard_ratio-->×\n<!-- table: recording -->\n| 2× |\n<!-- end of table -->\n3×\n";
        assert_eq!(factors(page).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn a_source_that_is_not_there_is_refused() {
        for (page, complaint) in [
            ("1<!--record/c/discard_ratio-->", "not in the results"),
            ("1<!--recordings/a/discard_ratio-->", "short name"),
            ("<!--record/a/discard_ratio-->", "no number"),
            ("1<!--record/a-->", "no source"),
            ("<!-- table: recording -->", "is missing"),
        ] {
            let error = quoted(page, &results()).expect_err(page);
            assert!(format!("{error:#}").contains(complaint), "{error:#}");
        }
    }
}
