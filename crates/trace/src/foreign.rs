//! Paths that are no trace directory: which other tool made them, as users often have them from
//! one.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::manifest;

/// Bytes at the beginning of a file by which it is recognised.
const HEAD: usize = 4096;

/// Returns the kind of file at a path and what can be done with it, if that is known.
pub(crate) fn what_it_is(path: &Path) -> Option<String> {
    if path.is_dir() {
        return directory(path);
    }
    let mut head = Vec::new();
    memlode_files::open(path).ok()?.take(HEAD as u64).read_to_end(&mut head).ok()?;
    let beside = path.ancestors().skip(1).take(2).find(|parent| manifest::is_ours(parent));
    if let Some(trace) = beside {
        let trace = if trace.as_os_str().is_empty() { Path::new(".") } else { trace };
        return Some(format!("it is a file of the trace {}: name that", trace.display()));
    }
    file(&head).map(str::to_owned)
}

/// The common end of records.
macro_rules! record {
    ($what:literal) => {
        concat!(
            $what,
            ", which memlode does not read: build the program with `memlode cc` and record it, `memlode run -- PROGRAM`"
        )
    };
}

fn file(head: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(head);
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let begins = |magic: &[u8]| head.starts_with(magic);
    Some(match () {
        () if begins(b"PERFILE2") => record!("it is a file of perf's (perf.data: samples, not accesses)"),
        () if begins(b"# callgrind format") || text.contains("\ncreator: callgrind") => {
            record!("it is a profile of Callgrind's (callgrind_annotate shows it)")
        }
        () if begins(b"desc: ") && text.contains("\ndesc: D1 cache") => {
            record!("it is a profile of Cachegrind's (cg_annotate shows it)")
        }
        () if begins(b"desc: ") && text.contains("\ntime_unit: ") => {
            record!("it is a profile of Massif's (ms_print shows it)")
        }
        () if begins(b"#thread\tevent\t") || begins(b"#events\tkind\t") => {
            "it is text that `memlode dump` or `record --to text` has written, for other programs to read: name the trace \
             directory that it is of, or record one, `memlode run -- PROGRAM`"
        }
        () if text.contains("\"format\": \"memlode report\"") || text.contains("\"format\": \"memlode ") => {
            "it is JSON that memlode has written: name the trace directory that it is of"
        }
        () if begins(b"program  ") && text.contains("\nmachine  ") => {
            "it is a report that memlode has written: name the trace directory that it is of"
        }
        () if begins(&[0xff; 4]) || begins(b"ARROW1") => {
            "it is an Arrow stream, as `memlode replay` writes one for other programs: name the trace directory that it is \
             of"
        }
        () if begins(b"\x7fELF") => {
            "it is a program, not a trace of one: record it, `memlode run -- PROGRAM`, if it was built with `memlode cc`"
        }
        () if is_archive(head) => "it is packed: unpack it, and name the directory that comes out",
        () if is_lackey(&text) => record!("it is the output of Valgrind's lackey"),
        () if is_din(first) => record!("it is a trace in the format of Dinero (din)"),
        () => return None,
    })
}

fn is_archive(head: &[u8]) -> bool {
    let magics: [&[u8]; 5] = [b"\x1f\x8b", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"BZh"];
    magics.iter().any(|magic| head.starts_with(magic)) || head.get(257..262) == Some(b"ustar")
}

/// `==4711== Lackey, …`, then `I  04001000,3`, ` L 1ffeffe7e0,8`, ` S …` and ` M …`.
fn is_lackey(text: &str) -> bool {
    let is_access = |line: &str| {
        let (kind, rest) = line.split_at_checked(3).unwrap_or_default();
        let (address, bytes) = rest.split_once(',').unwrap_or_default();
        matches!(kind, "I  " | " L " | " S " | " M ")
            && u64::from_str_radix(address, 16).is_ok()
            && bytes.parse::<u32>().is_ok()
    };
    text.contains("== Lackey,")
        || text.lines().filter(|line| !line.starts_with("==")).take(2).all(is_access)
            && text.lines().any(is_access)
}

/// A label of 0 to 4 and an address in hexadecimal, in each line.
fn is_din(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (label, address) = (words.next(), words.next());
    matches!(label, Some("0" | "1" | "2" | "3" | "4"))
        && address.is_some_and(|text| {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            digits.len() >= 3 && u64::from_str_radix(digits, 16).is_ok()
        })
}

fn directory(path: &Path) -> Option<String> {
    let mut names: Vec<_> =
        fs::read_dir(path).ok()?.flatten().take(10_000).map(|entry| entry.file_name()).collect();
    names.sort();
    let has = |wanted: fn(&str) -> bool| names.iter().any(|name| name.to_str().is_some_and(wanted));
    if let Some(parent) = path.canonicalize().ok()?.parent().filter(|parent| manifest::is_ours(parent)) {
        return Some(format!("it is a part of the trace {}: name that", parent.display()));
    }
    let traces: Vec<_> = names.iter().filter(|name| manifest::is_ours(&path.join(name))).collect();
    if let [first, ..] = traces[..] {
        let (count, first) = (traces.len(), path.join(first));
        let traces = if count == 1 { "a trace".to_owned() } else { format!("{count} traces") };
        return Some(format!("it holds {traces}: name one, as in {}", first.display()));
    }
    let is_drmemtrace = |name: &str| name.starts_with("drmemtrace.") || name.ends_with(".memtrace.gz");
    let holds_drmemtrace = has(is_drmemtrace)
        || has(|name| name == "modules.log")
        || has(|name| {
            name.ends_with(".trace.zip") || name.ends_with(".trace.gz") || name.ends_with(".raw.lz4")
        })
        || (has(|name| name == "raw") && path.join("raw/modules.log").exists());
    if holds_drmemtrace {
        return Some(
            record!("it is a directory of DynamoRIO's drmemtrace (`drrun -t drmemtrace -indir` reads it)")
                .to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(bytes: &[u8]) -> &'static str {
        file(bytes).unwrap_or("unknown")
    }

    #[test]
    fn files_of_other_tools_are_known() {
        let lackey = "==7== Lackey, an example Valgrind tool\n==7== \nI  0401f0b0,3\n L 1ffeffe7e0,8\n";
        for (bytes, word) in [
            (&b"PERFILE2h\0\0\0"[..], "perf"),
            (b"# callgrind format\nversion: 1\ncreator: callgrind-3.19.0\n", "Callgrind"),
            (b"version: 1\ncreator: callgrind-3.19.0\n", "Callgrind"),
            (b"desc: I1 cache:         32768 B\ndesc: D1 cache:         32768 B\n", "Cachegrind"),
            (b"desc: --pages-as-heap=no\ncmd: ./x\ntime_unit: i\n", "Massif"),
            (lackey.as_bytes(), "lackey"),
            (b" L 1ffeffe7e0,8\n S 1ffeffe7e0,8\n", "lackey"),
            (b"2 408ed4\n0 10019d94\n", "Dinero"),
            (b"0 0x7ffe1000\n", "Dinero"),
            (crate::text::HEADER.as_bytes(), "memlode dump"),
            (crate::census::HEADER.as_bytes(), "memlode dump"),
            (b"{\n  \"format\": \"memlode report\",\n", "JSON"),
            (b"program  ./x\nmachine  host\n", "a report"),
            (&[0xff, 0xff, 0xff, 0xff, 0, 1], "Arrow"),
            (b"\x7fELF\x02\x01", "a program"),
            (b"\x1f\x8b\x08", "unpack it"),
        ] {
            assert!(told(bytes).contains(word), "{word}: {}", told(bytes));
        }
        for bytes in
            [&b""[..], b"text", b"1 2\n", b"0 g\n", b"# comment\n", b"\0\0\0\0", b"L ,\n", b"desc: x\n"]
        {
            assert_eq!(told(bytes), "unknown", "{bytes:?}");
        }
    }
}
