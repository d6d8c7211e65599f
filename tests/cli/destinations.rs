//! `--to`: where a trace can go, and that it is the same trace everywhere.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::record::program;
use crate::{assert_one_sentence, memlode, stderr, stdout};

fn folder() -> TempDir {
    TempDir::new().expect("a temporary folder")
}

fn run(folder: &Path, ours: &[&str]) -> Output {
    memlode().current_dir(folder).args(ours).arg("--").arg(program()).output().expect("memlode runs")
}

fn assert_whole(directory: &Path) {
    let check = memlode().arg("check").arg(directory).output().expect("memlode runs");
    assert!(check.status.success(), "{}", stderr(&check) + &stdout(&check));
    assert!(stdout(&check).contains("whole: "), "{}", stdout(&check));
}

fn in_memory() -> Vec<PathBuf> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    entries
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("memlode-")))
        .collect()
}

/// A receiver in the background; ended when dropped.
struct Serve {
    child: Child,
    address: String,
    token: Option<String>,
}

impl Serve {
    fn start(folder: &Path, options: &[&str]) -> Serve {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("memlode"))
            .current_dir(folder)
            .env_remove("MEMLODE_TOKEN")
            .args(["serve", "-o", "received"])
            .args(options)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("memlode runs");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut line = || lines.next().expect("a line").expect("text");
        let address = line().strip_prefix("listening on ").expect("an address").to_owned();
        let is_tcp = address.starts_with("tcp://") && !options.contains(&"--token-file");
        let token = is_tcp.then(|| line().strip_prefix("token ").expect("a token").to_owned());
        Serve { child, address, token }
    }

    fn record(&self, folder: &Path) -> Output {
        let mut command = memlode();
        command.current_dir(folder).args(["record", "--to", &self.address, "--"]).arg(program());
        if let Some(token) = &self.token {
            command.env("MEMLODE_TOKEN", token);
        }
        command.output().expect("memlode runs")
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_trace_through_tcp() {
    let folder = folder();
    let mut serve = Serve::start(folder.path(), &["--once", "--listen", "tcp://127.0.0.1:0"]);
    let output = serve.record(folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "0\n");
    assert!(stderr(&output).contains(&format!("sent to {}", serve.address)), "{}", stderr(&output));
    assert!(serve.child.wait().expect("it ends").success());
    let received = folder.path().join("received");
    assert_whole(&received);
    assert_eq!(fs::metadata(&received).expect("a directory").permissions().mode() & 0o077, 0);
}

#[test]
fn traces_through_a_unix_socket_get_directories_of_their_own() {
    let folder = folder();
    let socket = format!("unix://{}", folder.path().join("socket").display());
    let serve = Serve::start(folder.path(), &["--listen", &socket]);
    for number in ["0001", "0002"] {
        assert_eq!(serve.record(folder.path()).status.code(), Some(0));
        assert_whole(&folder.path().join("received").join(number));
    }
}

#[test]
fn a_token_is_asked_for_and_stays_with_memlode() {
    let folder = folder();
    let file = folder.path().join("token");
    fs::write(&file, "a secret of ours\n").expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("permissions");
    let serve = Serve::start(folder.path(), &["--token-file", "token", "--listen", "tcp://127.0.0.1:0"]);
    let to = |extra: &[&str]| {
        let mut command = memlode();
        command.current_dir(folder.path()).args(["record", "--to", &serve.address]).args(extra);
        command
    };
    let none = to(&["./p"]).arg("--").output().expect("memlode runs");
    assert_eq!(none.status.code(), Some(127), "the program is looked for first");
    let none = to(&["--"]).arg(program()).output().expect("memlode runs");
    assert_eq!(none.status.code(), Some(125));
    assert_one_sentence(&none, &["needs the receiver's token", "MEMLODE_TOKEN"]);
    let wrong = to(&["--"]).arg(program()).env("MEMLODE_TOKEN", "guess").output().expect("memlode runs");
    assert_one_sentence(&wrong, &["the token is not the right one"]);
    assert_eq!(stdout(&wrong), "", "the program did not run");

    let right = to(&["--token-file", "token", "--"]).arg(program()).output().expect("memlode runs");
    assert_eq!(right.status.code(), Some(0), "{}", stderr(&right));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("permissions");
    let open = to(&["--token-file", "token", "--"]).arg(program()).output().expect("memlode runs");
    assert_one_sentence(&open, &["others may read it", "chmod 600 token"]);
    // The traced program is a stranger to the token.
    let shell =
        to(&["sh", "-c", "echo ${MEMLODE_TOKEN-unset}"]).env("MEMLODE_TOKEN", "a secret of ours").output();
    assert_eq!(stdout(&shell.expect("memlode runs")), "unset\n");
}

#[test]
fn a_receiver_that_is_not_there_is_told_before_the_program_runs() {
    let folder = folder();
    let output = memlode()
        .current_dir(folder.path())
        .env("MEMLODE_TOKEN", "x")
        .args(["record", "--to", "tcp://127.0.0.1:1", "--"])
        .arg(program())
        .output()
        .expect("memlode runs");
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(125), ""));
    assert_one_sentence(&output, &["tcp://127.0.0.1:1", "start `memlode serve` first"]);
}

#[test]
fn a_trace_that_outgrows_the_receiver_leaves_the_program_alone() {
    let folder = folder();
    let serve = Serve::start(folder.path(), &["--listen", "tcp://127.0.0.1:0", "--limit", "1k"]);
    let output = serve.record(folder.path());
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(stdout(&output), "0\n", "the program ends as if nothing were");
    assert_one_sentence(&output, &["recording stopped early", "larger than the 1024 bytes"]);
}

#[test]
fn memory_is_given_back() {
    let folder = folder();
    let before = in_memory();
    let output = run(folder.path(), &["run", "-m", "generic", "--to", "ram"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("item.key"), "{}", stderr(&output));
    let output = run(folder.path(), &["record", "--to", "ram", "-o", "kept"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_whole(&folder.path().join("kept"));
    let output = run(folder.path(), &["record", "--to", "ram"]);
    assert_one_sentence(&output, &["would leave nothing", "-o"]);
    let own = |path: &PathBuf| before.contains(path) || path.to_string_lossy().contains("memlode-collector");
    // Others may be recording, too: what is there belongs to a process that lives.
    for left in in_memory().iter().filter(|path| !own(path)) {
        assert!(!is_left_over(left), "{} was left behind", left.display());
    }
}

/// Returns whether a directory exists, and no process holds its lock.
fn is_left_over(directory: &Path) -> bool {
    use rustix::fs::{FlockOperation, flock};
    let lock = |file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    fs::File::open(directory).is_ok_and(lock) && directory.exists()
}

/// A directory for temporary files in which the program runs until it is ended.
fn kill_in(folder: &Path, options: &[&str]) {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("memlode"))
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .args(options)
        .arg("--")
        .arg(program())
        .arg("wait")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("memlode runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    while lines.next().expect("a line").expect("text") != "ready" {}
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let pid = child.id();
    // The program is an orphan now.
    let children = fs::read_dir("/proc").expect("processes").flatten().map(|entry| entry.path());
    for process in children {
        let ours = fs::read(process.join("cmdline")).is_ok_and(|line| {
            line.starts_with(program().as_os_str().as_encoded_bytes()) && line.ends_with(b"wait\0")
        });
        let here =
            fs::read_link(process.join("cwd")).is_ok_and(|at| at == folder.canonicalize().expect("a path"));
        if ours && here {
            let number =
                process.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok());
            let number = number.and_then(rustix::process::Pid::from_raw).expect("a process");
            let _ = rustix::process::kill_process(number, rustix::process::Signal::KILL);
        }
    }
    assert_ne!(pid, 0);
}

#[test]
fn what_a_killed_memlode_leaves_is_removed_by_the_next() {
    let folder = folder();
    let runtime = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
        let is_ours = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("memlode-"))
        };
        entries.filter(is_ours).collect()
    };
    kill_in(folder.path(), &["record", "-o", "t"]);
    assert_eq!(runtime(folder.path()).len(), 1, "it could not remove it");
    let output = memlode()
        .current_dir(folder.path())
        .env("XDG_RUNTIME_DIR", folder.path())
        .args(["record", "-o", "next", "--"])
        .arg(program())
        .output()
        .expect("memlode runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(runtime(folder.path()).is_empty());
}

#[test]
fn each_of_many_at_once_gets_a_directory_of_its_own() {
    let folder = folder();
    let together = 6;
    let named: Vec<Child> = (0..together)
        .map(|_| {
            Command::new(assert_cmd::cargo::cargo_bin!("memlode"))
                .current_dir(folder.path())
                .args(["record", "--"])
                .arg(program())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("memlode runs")
        })
        .collect();
    for child in named {
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert_whole(&folder.path().join("memlode-prog-trace"));
    (2..=together)
        .for_each(|number| assert_whole(&folder.path().join(format!("memlode-prog-trace-{number}"))));

    let socket = format!("unix://{}", folder.path().join("socket").display());
    let serve = Serve::start(folder.path(), &["--listen", &socket]);
    std::thread::scope(|scope| {
        for _ in 0..together {
            scope.spawn(|| assert_eq!(serve.record(folder.path()).status.code(), Some(0)));
        }
    });
    (1..=together).for_each(|number| assert_whole(&folder.path().join(format!("received/{number:04}"))));
}

#[test]
fn a_trace_that_is_being_written_is_not_replaced() {
    let folder = folder();
    let directory = folder.path().join("t");
    let writer =
        memlode_trace::write::TraceWriter::create(&directory, Default::default(), false).expect("a trace");
    let options: [&[&str]; 3] =
        [&["record", "-o", "t"], &["record", "-o", "t", "--force"], &["run", "--live", "-o", "t"]];
    for options in options {
        let output = run(folder.path(), options);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(125), ""), "it does not begin");
        assert_one_sentence(&output, &["t exists and another memlode is writing its trace there"]);
    }
    drop(writer);
    assert_eq!(run(folder.path(), &["record", "-o", "t", "--force"]).status.code(), Some(0));
}

#[test]
fn memory_has_a_cap() {
    let folder = folder();
    let output = run(folder.path(), &["run", "-m", "generic", "--to", "ram", "--ram-limit", "1k"]);
    assert_eq!(stdout(&output), "0\n");
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert!(stderr(&output).contains("may hold 1024 bytes"), "{}", stderr(&output));
}

#[test]
fn text_is_what_dump_prints() {
    let folder = folder();
    let output = run(folder.path(), &["record", "--to", "text", "-o", "events.tsv"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = fs::read_to_string(folder.path().join("events.tsv")).expect("a file");
    assert_eq!(
        text.lines().filter(|line| line.contains("\tload\t") && line.contains("item.key")).count(),
        300_000
    );
    let printed = run(folder.path(), &["record", "--to", "text"]);
    let printed = stdout(&printed);
    // The program's line, and then the same columns; addresses differ from run to run.
    assert_eq!(printed.lines().next(), Some("0"));
    assert_eq!(printed.lines().nth(1), text.lines().next());
    assert_eq!(printed.lines().count(), text.lines().count() + 1);
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = folder();
    let output = run(folder.path(), &["record", "--to", "disk"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("expected directory, ram, text, tcp://HOST:PORT or unix:///PATH"));
    let output = run(folder.path(), &["run", "--to", "tcp://127.0.0.1:1"]);
    assert_one_sentence(&output, &["is reported there", "memlode record --to tcp://127.0.0.1:1"]);
    let output = memlode().args(["serve", "-o", "x", "--listen", "here"]).output().expect("memlode runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("'here' is no address"), "{}", stderr(&output));
}
