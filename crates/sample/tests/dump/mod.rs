//! Samples as `perf script -D` prints them, beside those that memlode decodes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use memlode_sample::perf_data::PerfData;
use memlode_sample::records::{RecordEvent, SampleRecord, SampleWeight};

/// A sample's fields as text, by the names that they have here.
type Fields = BTreeMap<String, String>;

/// Number of a text that begins with a decimal number or `0x`.
fn number(text: &str) -> u64 {
    let digits = text.trim_start_matches("0x");
    let base = if digits.len() < text.len() { 16 } else { 10 };
    u64::from_str_radix(digits, base).unwrap_or_else(|_| panic!("a number: {text}"))
}

/// Samples in the output of `perf script -D -F event`.
fn dumped(text: &str) -> Vec<Fields> {
    let mut found: Vec<Fields> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(at) = words.iter().position(|word| word.starts_with("PERF_RECORD_SAMPLE")) {
            found.push(first_line(&words, at));
            continue;
        }
        let Some(fields) = found.last_mut() else { continue };
        let mut set = |name: &str, value: String| drop(fields.insert(name.into(), value));
        match &words[..] {
            ["...", "weight:", weight] => {
                let numbers = weight.split(',').map(|part| number(part).to_string()).collect::<Vec<_>>();
                set("weight", numbers.join(","));
            }
            [".", "data_src:", word] => set("data_src", number(word).to_string()),
            ["..", "phys_addr:", word] => set("phys_addr", number(word).to_string()),
            ["..", "data", "page", "size:", size] => set("data_page", (*size).into()),
            ["..", "code", "page", "size:", size] => set("code_page", (*size).into()),
            [".....", index, address] if index.ends_with(':') => {
                set(&format!("chain {index}"), u64::from_str_radix(address, 16).expect("hex").to_string());
            }
            ["....", register, value] if value.starts_with("0x") => {
                set(&format!("register {register}"), number(value).to_string());
            }
            [event] if event.ends_with(':') => set("event", event.trim_end_matches(':').into()),
            _ => {}
        }
    }
    found
}

/// `CPU TIME OFFSET [SIZE]: PERF_RECORD_SAMPLE(IP, MISC): PID/TID: IP period: P addr: A`, of which the processor may be missing.
fn first_line(words: &[&str], at: usize) -> Fields {
    let (process, thread) = words[at + 2].trim_end_matches(':').split_once('/').expect("pid/tid");
    let mut fields = Fields::new();
    let mut set = |name: &str, value: u64| drop(fields.insert(name.into(), value.to_string()));
    set("pid", number(process));
    set("tid", number(thread));
    set("ip", number(words[at + 3]));
    set("period", number(words[at + 5]));
    set("address", number(words[at + 7]));
    set("time", number(words[at - 3]));
    if at == 4 {
        set("cpu", number(words[0]));
    }
    fields
}

/// Returns these fields as memlode reads them.
fn decoded(path: &Path) -> Vec<Fields> {
    let data = PerfData::open(path).expect("a recording");
    let mut found = Vec::new();
    data.replay(&mut |event, record| {
        let RecordEvent::Sample(sample) = &record.event else { return };
        let attributes = &data.events()[event].attributes;
        let mut fields = fields_of(sample, attributes.period);
        let mut set = |name: &str, value: String| drop(fields.insert(name.into(), value));
        set("pid", record.pid.to_string());
        set("tid", record.tid.to_string());
        set("time", record.time.to_string());
        set("event", data.events()[event].name.clone());
        found.push(fields);
    })
    .expect("whole");
    found
}

fn fields_of(sample: &SampleRecord, period: u64) -> Fields {
    const REGISTERS: [&str; 16] = [
        "AX", "DX", "CX", "BX", "SI", "DI", "BP", "SP", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15",
    ];
    let mut fields = Fields::new();
    let mut set = |name: &str, value: String| drop(fields.insert(name.into(), value));
    set("ip", sample.ip.to_string());
    set("period", sample.period.unwrap_or(period).to_string());
    set("address", sample.address.unwrap_or(0).to_string());
    if let Some(cpu) = sample.cpu {
        set("cpu", cpu.to_string());
    }
    match sample.weight {
        Some(SampleWeight::Whole(weight)) => set("weight", weight.to_string()),
        Some(SampleWeight::Parts(a, b, c)) => set("weight", format!("{a},{b},{c}")),
        None => {}
    }
    if let Some(word) = sample.data_source {
        set("data_src", word.to_string());
    }
    if let Some(address) = sample.physical {
        set("phys_addr", address.to_string());
    }
    for (name, bytes) in [("data_page", sample.page_bytes), ("code_page", sample.code_page_bytes)] {
        let words = |bytes| match bytes {
            0 => "N/A".into(),
            0x20_0000 => "2M".into(),
            bytes => format!("{}K", bytes / 1024),
        };
        if let Some(bytes) = bytes {
            set(name, words(bytes));
        }
    }
    for (index, address) in sample.call_chain.iter().enumerate() {
        set(&format!("chain {index}:"), address.to_string());
    }
    for (name, value) in REGISTERS.iter().zip(sample.registers.iter().flat_map(|all| all.general)) {
        set(&format!("register {name}"), value.to_string());
    }
    fields
}

/// Fields are those that perf prints, and nothing that perf prints is missing.
pub fn assert_agrees(path: &Path, dump: &str, least: usize) {
    let (expected, found) = (dumped(dump), decoded(path));
    assert!(expected.len() >= least, "{}: {} samples", path.display(), expected.len());
    assert_eq!(found.len(), expected.len(), "{}", path.display());
    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
        for (field, value) in expected {
            assert_eq!(found.get(field), Some(value), "{} sample {number}: {field}", path.display());
        }
    }
}

/// This machine's perf, which says nothing.
pub fn perf(arguments: &[&str]) -> Command {
    let mut perf = Command::new("perf");
    perf.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    perf
}

/// Dumps a recording.
pub fn script(path: &Path) -> String {
    let output = perf(&["script", "-D", "-F", "event", "-i"]).arg(path).output().expect("perf of linux-perf");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
