//! Damaged, foreign and hostile input: one sentence with what to do, a status that says so, and what is whole
//! stays readable.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use memlode_trace::format::version;
use serde_json::Value;
use tempfile::TempDir;

use crate::record::{long_trace, program, trace};
use crate::{assert_one_sentence, memlode, stderr, stdout};

/// Commands that read a trace.
const READERS: [&[&str]; 7] = [
    &["report", "-m", "generic"],
    &["sim", "-m", "generic"],
    &["replay", "--rows", "hits", "-m", "generic", "-n", "1000"],
    &["replay", "--analyse", "shared", "-m", "generic"],
    &["timeline", "-m", "generic"],
    &["dump", "-n", "1000"],
    &["check"],
];

fn read(command: &[&str], directory: &Path) -> Output {
    memlode()
        .arg(command[0])
        .arg(directory)
        .args(&command[1..])
        .timeout(Duration::from_secs(600))
        .output()
        .expect("memlode runs and ends")
}

/// A copy of a good trace.
fn copy() -> (TempDir, PathBuf) {
    copy_of(trace())
}

fn copy_of(trace: &Path) -> (TempDir, PathBuf) {
    let folder = TempDir::new().expect("a temporary folder");
    let directory = folder.path().join("trace");
    for part in ["", "threads", "modules"] {
        fs::create_dir(directory.join(part)).expect("a folder");
        for entry in fs::read_dir(trace.join(part)).expect("a folder") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("a type").is_file() {
                fs::copy(entry.path(), directory.join(part).join(entry.file_name())).expect("a copy");
            }
        }
    }
    (folder, directory)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    ["manifest.json", "events.ndjson", "modules/0000.mlm", "threads/p0000-t0000.mlt"]
        .map(|name| directory.join(name))
        .to_vec()
}

#[test]
fn what_is_no_trace() {
    let folder = TempDir::new().expect("a temporary folder");
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    let foreign = folder.path().join("foreign");
    fs::create_dir(&foreign).expect("a folder");
    fs::write(foreign.join("manifest.json"), "{\"name\": \"a web app\"}").expect("a file");
    let file = folder.path().join("file");
    fs::write(&file, "text").expect("a file");
    for command in READERS {
        for (directory, words) in [
            (folder.path().join("missing"), "there is no such directory"),
            (file.clone(), "it is not a directory"),
            (empty.clone(), "it has no manifest.json"),
            (foreign.clone(), "not one of memlode's"),
        ] {
            let output = read(command, &directory);
            assert_eq!(output.status.code(), Some(1), "{command:?}");
            assert_one_sentence(&output, &[words, directory.to_str().expect("UTF-8")]);
        }
    }
}

/// Files of other tools, and files of memlode that are no traces.
#[test]
fn what_is_known_but_no_trace_is_called_by_its_name() {
    let folder = TempDir::new().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let file = |name: &str, contents: &str| {
        fs::write(at(name), contents).expect("a file");
        at(name)
    };
    fs::create_dir_all(at("drmemtrace.prog.1.dir/trace")).expect("a folder");
    file("drmemtrace.prog.1.dir/trace/drmemtrace.prog.1.trace.zip", "PK");
    fs::create_dir_all(at("raw-one/raw")).expect("a folder");
    file("raw-one/raw/modules.log", "Module Table: version 5");
    let (_guard, whole) = copy();
    let dumped = file("events.tsv", &stdout(&read(&["dump", "-n", "10"], &whole)));
    let reported = file("report.json", &stdout(&read(&["report", "-m", "generic", "--json"], &whole)));
    let text = file("report.txt", &stdout(&read(&["report", "-m", "generic"], &whole)));
    let record = "`memlode run -- PROGRAM`";
    for (path, words) in [
        (file("lackey.out", "==1== Lackey, an example\nI  04001000,3\n L 1ffe,8\n"), ["lackey", record]),
        (file("prog.din", "2 408ed4\n0 10019d94\n"), ["Dinero", record]),
        (file("callgrind.out.1", "# callgrind format\nversion: 1\n"), ["Callgrind", record]),
        (file("perf.data", "PERFILE2xxxxxxxx"), ["perf", record]),
        (at("drmemtrace.prog.1.dir/trace"), ["drmemtrace", record]),
        (at("raw-one"), ["drmemtrace", record]),
        (dumped, ["memlode dump", "name the trace directory"]),
        (reported, ["JSON", "name the trace directory"]),
        (text, ["a report", "name the trace directory"]),
        (program().to_owned(), ["a program", record]),
        (whole.join("manifest.json"), ["it is a file of the trace", "name that"]),
        (whole.join("threads/p0000-t0000.mlt"), ["it is a file of the trace", "name that"]),
        (whole.join("threads"), ["it is a part of the trace", "name that"]),
        (whole.parent().expect("a folder").to_owned(), ["it holds a trace: name one, as in", "trace"]),
    ] {
        for command in [READERS[0], READERS[5], READERS[6]] {
            let output = read(command, &path);
            assert_eq!(output.status.code(), Some(1), "{command:?}");
            assert_one_sentence(&output, &words);
        }
    }
}

#[test]
fn a_newer_trace_asks_for_a_newer_memlode() {
    let (_folder, directory) = copy();
    let manifest = directory.join("manifest.json");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    let body = text.rsplit_once(",\"crc32\"").expect("a checksum").0;
    let current = format!("\"version\": {}", version::TRACE);
    let body = body.replacen(&current, "\"version\": 99", 1);
    let crc = crc32(body.as_bytes());
    fs::write(&manifest, format!("{body},\"crc32\":\"{crc:08x}\"}}\n")).expect("a file");
    for command in READERS {
        let output = read(command, &directory);
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        assert_one_sentence(&output, &["version 99", "newer memlode"]);
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn a_truncated_thread_is_salvaged_to_its_last_whole_chunk() {
    let (_folder, directory) = copy_of(long_trace());
    let file = directory.join("threads/p0000-t0000.mlt");
    let bytes = fs::read(&file).expect("the thread");
    fs::write(&file, &bytes[..bytes.len() - 7]).expect("a file");
    let output = read(&["report", "--json", "-m", "generic"], &directory);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["trace"]["complete"], false);
    assert!(report["trace"]["notes"].to_string().contains("p0000-t0000.mlt"), "{}", report["trace"]);
    let accesses = report["total"]["accesses"].as_u64().expect("a number");
    assert!(accesses > 300_000 && accesses < 700_000, "{accesses}");

    let output = read(&["check", "--json"], &directory);
    assert_eq!(output.status.code(), Some(3));
    let check: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(check["sound"], false);
    assert!(!check["problems"].as_array().expect("problems").is_empty());
}

#[test]
fn empty_files() {
    let whole = files(trace()).len();
    for at in 0..whole {
        let (_folder, directory) = copy();
        fs::write(&files(&directory)[at], "").expect("a file");
        for command in READERS {
            let output = read(command, &directory);
            let status = output.status.code().expect("an exit status, not a signal");
            assert!(matches!(status, 0 | 1 | 3), "{command:?}: {status}: {}", stderr(&output));
            assert!(!stderr(&output).contains("panicked"), "{command:?}: {}", stderr(&output));
            assert!(!(command[0] == "check" && status == 0), "check finds nothing in file {at}");
        }
    }
}

#[test]
fn flipped_bits_are_noticed_and_never_fatal() {
    let (_folder, directory) = copy();
    // A fixed sequence, so that a failure can be repeated.
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    for file in files(&directory) {
        let bytes = fs::read(&file).expect("a file");
        for round in 0..12 {
            // Headers are at the beginning: every other flip goes there.
            let span = if round % 2 == 0 { bytes.len().min(200) } else { bytes.len() };
            let at = next(span as u64 * 8);
            let mut flipped = bytes.clone();
            flipped[at as usize / 8] ^= 1 << (at % 8);
            fs::write(&file, &flipped).expect("a file");
            let name = file.display();
            for command in [READERS[0], READERS[6]] {
                let output = read(command, &directory);
                let status =
                    output.status.code().unwrap_or_else(|| panic!("{name} bit {at}: {command:?} crashed"));
                let text = stderr(&output);
                assert!(!text.contains("panicked"), "{name} bit {at}: {command:?}: {text}");
                if command[0] == "check" {
                    assert!(
                        matches!(status, 1 | 3),
                        "{name} bit {at}: check says {status}: {}",
                        stdout(&output)
                    );
                }
            }
        }
        fs::write(&file, &bytes).expect("a file");
    }
    assert_eq!(read(&["check"], &directory).status.code(), Some(0), "and back to whole");
}

/// Limits the size of files: writing fails, and memlode is not ended by a signal; nor does the program learn of it.
#[test]
fn a_limit_of_file_sizes_is_told() {
    let folder = TempDir::new().expect("a temporary folder");
    let script = |limit: &str, options: &str| {
        let memlode = assert_cmd::cargo::cargo_bin!("memlode");
        let script = format!(
            "{limit} exec {} {options} -- sh -c 'grep SigCgt /proc/self/status; exec {} scatter'",
            memlode.display(),
            program().display()
        );
        std::process::Command::new("bash")
            .current_dir(folder.path())
            .args(["-c", &script])
            .output()
            .expect("bash")
    };
    let unlimited = script("", "record -o whole");
    assert_eq!(unlimited.status.code(), Some(0), "{}", stderr(&unlimited));
    // The shared memory is a file, too, and larger than that.
    let output = script("ulimit -f 64;", "record -o small");
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert_eq!(stdout(&output), stdout(&unlimited), "the program runs to its end and notices nothing");
    assert!(stderr(&output).contains("ulimit -f"), "{}", stderr(&output));
    let output = std::process::Command::new("bash")
        .current_dir(folder.path())
        .args([
            "-c",
            &format!(
                "ulimit -f 8; exec {} dump whole > out",
                assert_cmd::cargo::cargo_bin!("memlode").display()
            ),
        ])
        .output()
        .expect("bash");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_one_sentence(&output, &["File too large"]);
}

#[test]
fn machines_that_cannot_be() {
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("odd.toml");
    for (text, words) in [
        ("name = ", "odd.toml:1"),
        ("name = \"odd\"\ndescription = \"odd\"\nsources = [\"none\"]\ncores = -3\n", "odd.toml:4"),
        ("nonsense = 1\n", "odd.toml"),
        ("", "odd.toml"),
    ] {
        fs::write(&file, text).expect("a file");
        let output = read(&["report", "-m", file.to_str().expect("UTF-8")], trace());
        assert_eq!(output.status.code(), Some(1));
        assert_one_sentence(&output, &[words]);
    }
    let output = read(&["report", "-m", "pentium"], trace());
    assert_one_sentence(&output, &["no machine named `pentium`", "generic"]);
    let output = read(&["sim", "-m", "./missing.toml"], trace());
    assert_one_sentence(&output, &["./missing.toml"]);
}

/// Files that a user names to be read are regular; all else is refused in a sentence, and nothing is waited for.
#[test]
fn what_is_named_and_is_no_file_is_refused_at_once() {
    let folder = TempDir::new().expect("a temporary folder");
    let place = |name: &str| folder.path().join(name).display().to_string();
    assert!(Command::new("mkfifo").arg(place("fifo.toml")).status().expect("mkfifo runs").success());
    fs::create_dir(place("folder.toml")).expect("a folder");
    let _listener = UnixListener::bind(place("socket.toml")).expect("a socket");
    for (name, target) in [("zero.toml", "/dev/zero"), ("link.toml", "fifo.toml")] {
        std::os::unix::fs::symlink(target, place(name)).expect("a link");
    }
    let trace = trace().to_str().expect("UTF-8");
    for (name, kind) in [
        ("fifo.toml", "a FIFO"),
        ("link.toml", "a FIFO"),
        ("folder.toml", "a directory"),
        ("socket.toml", "a socket"),
        ("zero.toml", "a device"),
    ] {
        let file = &place(name);
        for command in [
            &["report", trace, "-m", file][..],
            &["whatif", trace, "--edits", file, "-m", "generic"],
            &["budget", "check", file, trace],
            &["bias", "counters", file],
            &["import", file],
        ] {
            let output = memlode().args(command).timeout(Duration::from_secs(600)).output().expect("it ends");
            assert_eq!(output.status.code(), Some(1), "{command:?}: {}", stderr(&output));
            assert_one_sentence(&output, &[name, &format!("is {kind}, not a regular file")]);
        }
    }
}

#[test]
fn a_full_disk_keeps_what_was_written_and_the_program_goes_on() {
    let folder = TempDir::new().expect("a temporary folder");
    let small = folder.path().join("small");
    fs::create_dir(&small).expect("a folder");
    // A file system of our own that holds the first chunks and no more.
    let script = format!(
        "mount -t tmpfs -o size=256k none {0} && {1} record -o {0}/t -- {2} scatter; \
         status=$?; cp -r {0}/t {3}; exit $status",
        small.display(),
        assert_cmd::cargo::cargo_bin!("memlode").display(),
        program().display(),
        folder.path().join("kept").display(),
    );
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .output()
        .expect("unshare runs");
    if stderr(&output).contains("unshare failed") || stderr(&output).contains("permission denied") {
        eprintln!("skipped: this machine allows no file system of our own: {}", stderr(&output));
        return;
    }
    assert_eq!(stdout(&output), "0\n", "the program ran to its end: {}", stderr(&output));
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert_one_sentence(&output, &["recording stopped early", "No space left on device"]);
    let output = read(&["check"], &folder.path().join("kept"));
    assert!(matches!(output.status.code(), Some(3)), "{}", stderr(&output));
    let output = read(&["report", "-m", "generic"], &folder.path().join("kept"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
