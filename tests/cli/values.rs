//! The analysis of values against a naive model of the same accesses, read from the text of `memlode dump`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{assert_one_sentence, installation, memlode, shared_folder, stderr, stdout};

/// Members and arrays of all sorts; stores of parts of words, copies with unknown values, blocks
/// that come back.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct item { int kind; long charge; double mass; float size; short id; char flag; };
enum { COUNT = 300 };
static int table[1024];
static union { long word; char bytes[8]; } parts[64];
static long counter;
static unsigned long seed = 1;
static unsigned next(void) { seed = seed * 6364136223846793005 + 1442695040888963407; return seed >> 40; }
__attribute__((noinline)) static long fresh(int n) {
  long *block = malloc(64);
  block[0] = 7;
  long got = block[0] + (n & 1);
  __asm__ volatile("" : : "r"(block) : "memory");
  free(block);
  return got;
}
int main(void) {
  struct item *items = malloc(COUNT * sizeof *items);
  for (int i = 0; i < COUNT; i++) {
    items[i].kind = 5000 + next() % 3;
    items[i].charge = next() % 300 - 150L;
    items[i].mass = 0.5 * (next() % 7);
    items[i].size = 0.1f * (next() % 9);
    items[i].id = i;
    items[i].flag = 1;
  }
  for (int i = 0; i < 1024; i++) table[i] = next() & 255;
  long sum = 0;
  for (int n = 0; n < 3000; n++) {
    struct item *item = &items[next() % COUNT];
    if (n % 5 == 0) item->kind = 5000 + next() % 3;
    item->flag = 1;
    table[next() % 1024] = next() & 3;
    sum += table[next() % 1024];
    sum += item->charge + (long)(item->mass + item->size);
    parts[n % 64].bytes[n % 7] = n & 64 ? 1 : 0;
    sum += parts[next() % 64].word;
    if (n % 100 == 0) memcpy(&items[n / 100], &items[n / 100 + 50], sizeof *items);
    if (n % 30 == 0) sum += fresh(n);
    if (n % 10 == 0) __atomic_fetch_add(&counter, n & 1, __ATOMIC_RELAXED);
  }
  printf("%ld %ld\n", sum, counter);
  return 0;
}
"#;

fn run(folder: &Path, words: &[&str]) -> String {
    let mut command = memlode();
    command.env("MEMLODE_HOME", installation()).current_dir(folder).args(words);
    let output = command.output().expect("memlode runs");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

fn recorded(name: &str, values: bool) -> PathBuf {
    let folder = shared_folder(name);
    fs::write(folder.join("program.c"), PROGRAM).expect("a file");
    let options: &[&str] = if values { &["--values"] } else { &[] };
    run(&folder, &[&["cc"], options, &["-O2", "-g", "program.c", "-o", "program"]].concat());
    run(&folder, &["record", "-o", "trace", "--", "./program"]);
    folder
}

/// The bytes of a value as `memlode dump` shows it, the lowest address first.
fn bytes_of(text: &str, bytes: usize) -> Vec<u8> {
    let Some(digits) = text.strip_prefix("0x") else {
        return match bytes {
            4 => text.parse::<f32>().expect("a number").to_le_bytes().to_vec(),
            _ => text.parse::<f64>().expect("a number").to_le_bytes().to_vec(),
        };
    };
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("digits");
    (0..bytes).rev().map(byte).collect()
}

/// The naive model: a byte of memory at a time, and all values of some data in one list.
#[derive(Default)]
struct Naive {
    there: BTreeMap<u64, u8>,
    loaded: BTreeMap<u64, u8>,
    /// Accesses that were compared, by line and kind, and those that brought nothing new.
    lines: BTreeMap<(u64, String), (u64, u64)>,
    /// Values by data, with their bytes, and whether they are floating-point numbers.
    data: BTreeMap<String, Vec<(Vec<u8>, bool)>>,
}

impl Naive {
    fn event(&mut self, row: &str) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [_, _, kind, address, bytes, place, _, variable, member, detail] = columns[..] else {
            panic!("{row}")
        };
        let Some(address) =
            address.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok())
        else {
            return;
        };
        let bytes: u64 = bytes.parse().unwrap_or(0);
        let line = place.rsplit(':').nth(1).and_then(|line| line.parse().ok()).unwrap_or(0);
        let values: Vec<&str> =
            detail.split(' ').filter_map(|word| word.split_once('=')).map(|(_, v)| v).collect();
        let memory = address..address + bytes;
        match kind {
            "alloc" => memory.for_each(|at| {
                self.there.remove(&at);
                self.loaded.remove(&at);
            }),
            "load" | "store" | "update" if detail == "-" => {
                let known = if kind == "load" { &mut self.loaded } else { &mut self.there };
                memory.for_each(|at| _ = known.remove(&at));
            }
            "load" | "store" | "update" => {
                let width: usize = if member == "int" { 4 } else { bytes as usize };
                let name = if member.contains('.') { member } else { variable };
                for value in &values {
                    let moved = bytes_of(value, bytes as usize);
                    let numbers =
                        moved.chunks(width).map(|number| (number.to_vec(), !value.starts_with("0x")));
                    self.data.entry(name.to_string()).or_default().extend(numbers);
                }
                let now = bytes_of(values[values.len() - 1], bytes as usize);
                let known = if kind == "load" { &mut self.loaded } else { &mut self.there };
                let same = (address..).zip(&now).all(|(at, byte)| known.get(&at) == Some(byte));
                if kind != "update" {
                    let counts = self.lines.entry((line, kind.to_string())).or_default();
                    counts.0 += 1;
                    counts.1 += u64::from(same);
                }
                known.extend((address..).zip(now.iter().copied()));
                self.there.extend((address..).zip(now));
            }
            _ => {}
        }
    }

    /// The rows of data that need fewer bytes: kind, number of values, least and most.
    fn narrow(&self) -> BTreeMap<String, (String, u64, String, String)> {
        let mut rows = BTreeMap::new();
        for (name, values) in &self.data {
            let different: BTreeSet<&[u8]> = values.iter().map(|(bytes, _)| &bytes[..]).collect();
            let width = values.iter().map(|(bytes, _)| bytes.len()).max().unwrap_or(0);
            let (least, most, fits) = if values.iter().any(|(_, is_float)| *is_float) {
                let number = |bytes: &[u8]| match bytes.len() {
                    4 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
                    _ => f64::from_le_bytes(bytes.try_into().unwrap()),
                };
                let all: Vec<f64> = values.iter().map(|(bytes, _)| number(bytes)).collect();
                let exact = width == 8 && all.iter().all(|&n| f64::from(n as f32) == n);
                let least = all.iter().copied().fold(f64::INFINITY, f64::min);
                (least.to_string(), all.iter().copied().fold(f64::NEG_INFINITY, f64::max).to_string(), exact)
            } else {
                let wide = |bytes: &[u8], fill: u8| {
                    let mut all = [fill; 16];
                    all[..bytes.len()].copy_from_slice(bytes);
                    i128::from_le_bytes(all)
                };
                let unsigned: Vec<i128> = values.iter().map(|(bytes, _)| wide(bytes, 0)).collect();
                let sign = |bytes: &[u8]| if bytes[bytes.len() - 1] >= 128 { 255 } else { 0 };
                let signed: Vec<i128> = values.iter().map(|(bytes, _)| wide(bytes, sign(bytes))).collect();
                let range = |all: &[i128]| (*all.iter().min().unwrap(), *all.iter().max().unwrap());
                let (plain, with_sign) = (range(&unsigned), range(&signed));
                let bits = |fits: &dyn Fn(u32) -> bool| (0..=64).find(|&bits| fits(bits)).unwrap();
                let plain_bits = bits(&|bits| plain.1 < 1 << bits);
                let sign_bits = bits(&|bits| {
                    bits > 0 && -(1 << (bits - 1)) <= with_sign.0 && with_sign.1 < 1 << (bits - 1)
                });
                let (least, most) = if plain_bits <= sign_bits { plain } else { with_sign };
                let needed = plain_bits.min(sign_bits);
                let fits = [8, 16, 32].iter().any(|&room| needed <= room && room < 8 * width as u32);
                (least.to_string(), most.to_string(), fits)
            };
            let kind = match different.len() {
                1 => "one",
                2..=16 if width > 1 => "few",
                _ if fits => "narrow",
                _ => continue,
            };
            rows.insert(name.clone(), (kind.to_string(), values.len() as u64, least, most));
        }
        rows
    }
}

fn name_of(row: &Value) -> String {
    let text = |key: &str| row["data"][key].as_str().map(str::to_string);
    match (text("type"), text("member"), text("variable")) {
        (Some(ty), Some(member), _) => format!("{ty}.{member}"),
        (_, _, variable) => variable.unwrap_or_default(),
    }
}

#[test]
fn values_are_those_of_a_naive_model() {
    let folder = recorded("values", true);
    let mut naive = Naive::default();
    run(&folder, &["dump", "trace"])
        .lines()
        .filter(|row| !row.starts_with('#'))
        .for_each(|row| naive.event(row));
    let wanted = ["replay", "trace", "--analyse", "values:least=1,share=0", "-m", "generic", "--json"];
    let found: Value = serde_json::from_str(&run(&folder, &wanted)).expect("JSON");
    let [narrow, silent, redundant] = &found["tables"].as_array().expect("tables")[..] else {
        panic!("{found}")
    };
    let rows = |table: &Value| table["rows"].as_array().expect("rows").clone();

    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let data: BTreeMap<String, (String, u64, String, String)> = rows(narrow)
        .iter()
        .map(|row| {
            let values = row["values"].as_u64().expect("a count");
            (name_of(row), (text(&row["kind"]), values, text(&row["least"]), text(&row["most"])))
        })
        .collect();
    assert_eq!(data, naive.narrow());
    let kind = |name: &str| data.get(name).map(|row| row.0.as_str());
    assert_eq!(
        ["item.flag", "item.kind", "item.charge", "item.mass", "table"].map(kind),
        [Some("one"), Some("few"), Some("narrow"), Some("few"), Some("narrow")]
    );

    for (table, kind, all, same) in
        [(silent, "store", "stores", "silent"), (redundant, "load", "loads", "redundant")]
    {
        let mut lines: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for row in rows(table) {
            let counts = lines.entry(row["line"]["line"].as_u64().expect("a line")).or_default();
            counts.0 += row[all].as_u64().expect("a count");
            counts.1 += row[same].as_u64().expect("a count");
        }
        let expected = naive.lines.iter().filter(|((_, of), (_, same))| of == kind && *same > 0);
        let expected: BTreeMap<u64, u64> = expected.map(|((line, _), (_, same))| (*line, *same)).collect();
        assert!(expected.len() > 2, "{expected:?}");
        assert_eq!(
            lines.into_iter().map(|(line, (_, same))| (line, same)).collect::<BTreeMap<_, _>>(),
            expected
        );
    }
}

#[test]
fn a_trace_without_values_says_how_to_record_them() {
    let folder = recorded("no-values", false);
    let mut command = memlode();
    command.current_dir(&folder).args(["replay", "trace", "--analyse", "values"]);
    let output = command.output().expect("memlode runs");
    assert_one_sentence(&output, &["trace: no values were recorded", "--values"]);
    assert_eq!(output.status.code(), Some(1));
}
