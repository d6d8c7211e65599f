//! `memlode doctor`: what this machine can do, what is missing, and how to get it.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Parser;
use memlode_collect::private::PrivateDirectory;
use memlode_machine::Machine;
use memlode_report::render::terminal::{tier_refusal, tier_use};
use memlode_sample::tiers::{LinuxSampling, Tier, TierKind, tiers};
use serde::Serialize;

use crate::driver::rustc;
use crate::driver::toolchain::search_path;
use crate::install::{Install, LLVM_VERSIONS};
use crate::print::{print, print_json};
use crate::status::{OK, PROBLEMS};

/// Say what this machine can do, what is missing, and how to get it
#[derive(Debug, Parser)]
#[command(
    after_help = "Exit status: 0 when programs can be compiled, recorded and reported; 3 when not. Where programs run that were \
                  compiled elsewhere, no compiler is needed: the last lines say what works."
)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One thing that was looked for.
#[derive(Debug, Serialize)]
struct Item {
    name: &'static str,
    ok: bool,
    /// Something does not work without it.
    required: bool,
    /// The work that needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    needed_to: Option<Work>,
    /// The state that was found.
    found: String,
    /// The remedy if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

/// The work that memlode does for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Work {
    /// Builds it.
    Compile,
    /// Runs it.
    Record,
}

/// Returns whether all is there that is needed for it.
fn works(items: &[Item], work: Work) -> bool {
    items.iter().all(|item| item.ok || !item.required || item.needed_to != Some(work))
}

pub fn run(args: Args) -> Result<ExitCode> {
    let items = examine();
    let [compile, record] = [Work::Compile, Work::Record].map(|work| works(&items, work));
    let sound = compile && record;
    if args.json {
        let works = serde_json::json!({ "compile": compile, "record": record, "report": true });
        print_json(&serde_json::json!({ "ok": sound, "works": works, "items": items }))?;
    } else {
        print(&(text(&items) + verdict(compile, record)))?;
    }
    Ok(ExitCode::from(if sound { OK } else { PROBLEMS }))
}

/// Returns the verdict on this machine.
fn verdict(compile: bool, record: bool) -> &'static str {
    match (compile, record) {
        (true, true) => "\nPrograms can be compiled, recorded and reported on this machine.\n",
        (false, true) => {
            "\nPrograms that were compiled elsewhere can be recorded and reported on this machine. To compile them here, \
             something is missing: see above.\n"
        }
        (true, false) => {
            "\nPrograms can be compiled on this machine, and traces reported. To record programs, something is missing: see \
             above.\n"
        }
        (false, false) => {
            "\nTraces can be reported on this machine. To compile programs, and to record them, something is missing: see \
             above.\n"
        }
    }
}

fn text(items: &[Item]) -> String {
    let colours = crate::term::colours(&std::io::stdout());
    let width = items.iter().map(|item| item.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for item in items {
        let (mark, colour) = match (item.ok, item.required) {
            (true, _) => ("ok     ", "\x1b[32m"),
            (false, true) => ("MISSING", "\x1b[1;31m"),
            (false, false) => ("no     ", "\x1b[33m"),
        };
        let (on, off) = if colours { (colour, "\x1b[0m") } else { ("", "") };
        let found = memlode_report::text::printable(&item.found);
        out += &format!("{on}{mark}{off}  {:width$}  {found}\n", item.name);
        if let Some(remedy) = item.remedy.as_ref().filter(|_| !item.ok) {
            out += &format!("{:9}{:width$}  → {remedy}\n", "", "");
        }
    }
    out
}

fn examine() -> Vec<Item> {
    let mut items = compilers();
    items.extend(rust());
    items.extend(kernel());
    items.extend(directories());
    items.push(optional(
        "valgrind",
        search_path("valgrind".as_ref())
            .map(|path| path.display().to_string())
            .ok_or("not on the path".into()),
        "apt-get install valgrind (only to compare the simulator with Cachegrind)",
    ));
    items.extend(sampling());
    items.extend(processor());
    items
}

fn required(work: Work, name: &'static str, found: Result<String, String>, remedy: &str) -> Item {
    Item { required: true, needed_to: Some(work), ..optional(name, found, remedy) }
}

fn optional(name: &'static str, found: Result<String, String>, remedy: &str) -> Item {
    let ok = found.is_ok();
    let found = found.unwrap_or_else(|missing| missing);
    let remedy = Some(remedy.to_string()).filter(|_| !ok);
    Item { name, ok, required: false, needed_to: None, found, remedy }
}

fn information(name: &'static str, found: String) -> Item {
    optional(name, Ok(found), "")
}

/// One compiler with its plug-in is enough: the best pair is the required one.
fn compilers() -> Vec<Item> {
    let mut items = Vec::new();
    let install = match Install::find() {
        Ok(install) => install,
        Err(error) => {
            let why = format!("{error:#}");
            return vec![required(Work::Compile, "installation", Err(why), "unset MEMLODE_HOME")];
        }
    };
    let usable = |version: u32| clang(version).is_some() && install.plugin(version).exists();
    let chosen = LLVM_VERSIONS.into_iter().find(|&v| usable(v)).unwrap_or(LLVM_VERSIONS[0]);
    for version in LLVM_VERSIONS {
        let needed = |name, found, remedy: &str| {
            if version == chosen {
                required(Work::Compile, name, found, remedy)
            } else {
                optional(name, found, remedy)
            }
        };
        let [clang_name, plugin_name, lld_name] = match version {
            22 => ["clang 22", "pass plug-in 22", "lld 22"],
            _ => ["clang 19", "pass plug-in 19", "lld 19"],
        };
        let apt = format!("apt-get install clang-{version} lld-{version}");
        items.push(needed(clang_name, clang(version).ok_or("not on the path".into()), &apt));
        items.push(needed(plugin_name, existing(&install.plugin(version)), "build memlode with `make`"));
        let lld = search_path(format!("ld.lld-{version}").as_ref()).map(|path| path.display().to_string());
        items.push(optional(lld_name, lld.ok_or("not on the path: needed for -flto only".into()), &apt));
    }
    let runtime = existing(&install.runtime());
    items.push(required(Work::Compile, "run-time library", runtime, "build memlode with `make`"));
    items.push(optional("…for -static", existing(&install.static_runtime()), "build memlode with `make`"));
    let flang = search_path("flang-22".as_ref()).map(|path| path.display().to_string());
    let for_fortran = "not on the path: needed for `memlode fc` only";
    items.push(optional("flang 22", flang.ok_or(for_fortran.into()), "apt-get install flang-22 lld-22"));
    items
}

/// Returns the tools of `memlode cargo`: rustc's own LLVM must match the plug-in's.
fn rust() -> Vec<Item> {
    let only = "needed for `memlode cargo` only";
    let get = "install Rust, https://rustup.rs, then `rustup toolchain install stable`";
    let rustc = said("rustc", "-vV").ok_or(format!("not on the path: {only}"));
    let rustc = rustc.and_then(|text| {
        let line = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let version = text.lines().next().unwrap_or_default().to_string();
        let llvm = line("LLVM version:").unwrap_or("unknown");
        match llvm.split('.').next().and_then(|major| major.parse::<u32>().ok()) {
            Some(rustc::LLVM) => Ok(format!("{version}, LLVM {llvm}")),
            _ => Err(format!("{version} has LLVM {llvm}, the plug-in needs {}", rustc::LLVM)),
        }
    });
    let newer = format!("a toolchain whose rustc has LLVM {}: `rustup update stable`", rustc::LLVM);
    let linked =
        rustc::require_linker().map(|()| "clang and lld of its LLVM").map_err(|error| error.to_string());
    let cargo = said("cargo", "--version").map(|text| text.trim().to_string());
    let is_there = said("rustc", "--version").is_some();
    vec![
        optional("rustc", rustc, if is_there { &newer } else { get }),
        optional("cargo", cargo.ok_or(format!("not on the path: {only}")), get),
        optional(
            "Rust's linker",
            linked.map(str::to_string),
            &format!("apt-get install clang-{0} lld-{0}", rustc::LLVM),
        ),
    ]
}

/// Returns the output of a program, if it is there and succeeds.
fn said(program: &str, option: &str) -> Option<String> {
    let output = Command::new(search_path(program.as_ref())?).arg(option).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the places of memlode's temporary files.
fn directories() -> Vec<Item> {
    // As the collector does it, and gone at once.
    let sockets = memlode_collect::socket_directory().map(|parent| parent.display().to_string());
    let memory = rustix::fs::statvfs("/dev/shm").map_err(|error| format!("/dev/shm: {error}"));
    let memory = memory.and_then(|free| {
        let free = memlode_report::text::bytes(free.f_bavail.saturating_mul(free.f_frsize));
        PrivateDirectory::create_in(Path::new("/dev/shm"))
            .map(|_| format!("/dev/shm, {free} free"))
            .map_err(|error| format!("/dev/shm: {error}"))
    });
    let here = std::env::current_dir().map_err(|error| error.to_string()).and_then(|here| {
        let name = here.display().to_string();
        let writable = rustix::fs::access(&here, rustix::fs::Access::WRITE_OK);
        writable.map(|()| name.clone()).map_err(|error| format!("{name}: {error}"))
    });
    vec![
        required(
            Work::Record,
            "sockets",
            sockets.map_err(|error| error.to_string()),
            "set TMPDIR or XDG_RUNTIME_DIR to a directory with a short path that you may write to",
        ),
        optional("traces", here, "name a directory that you may write to, with -o, for `run` and `record`"),
        optional("memory for --to ram", memory, "mount a tmpfs at /dev/shm that you may write to"),
    ]
}

fn clang(version: u32) -> Option<String> {
    let path = search_path(format!("clang-{version}").as_ref())?;
    let output = Command::new(&path).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let number =
        text.split_whitespace().skip_while(|word| *word != "version").nth(1).unwrap_or("of unknown version");
    Some(format!("{} ({number})", path.display()))
}

fn existing(file: &std::path::Path) -> Result<String, String> {
    let name = file.display().to_string();
    if file.exists() { Ok(name) } else { Err(format!("{name} does not exist")) }
}

fn kernel() -> Vec<Item> {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or("unknown".into());
    let memfd = rustix::fs::memfd_create("memlode-doctor", rustix::fs::MemfdFlags::CLOEXEC);
    let pidfd = rustix::process::pidfd_open(rustix::process::getpid(), rustix::process::PidfdFlags::empty());
    let newer = "a Linux kernel of 5.4 or later outside a sandbox that forbids this call";
    vec![
        information("kernel", release),
        required(
            Work::Record,
            "memfd_create",
            memfd.map(|_| "works".into()).map_err(|error| error.to_string()),
            newer,
        ),
        required(
            Work::Record,
            "pidfd_open",
            pidfd.map(|_| "works".into()).map_err(|error| error.to_string()),
            newer,
        ),
        information("memory pages", pages(rustix::param::page_size())),
        match read("/proc/sys/kernel/yama/ptrace_scope").as_deref() {
            None => information("ptrace", "unrestricted (no Yama)".into()),
            Some("0") => information("ptrace", "any process of the same user".into()),
            Some("1") => information("ptrace", "children only".into()),
            Some(scope) => information("ptrace", format!("restricted (ptrace_scope {scope})")),
        },
        information(
            "huge pages",
            read("/sys/kernel/mm/transparent_hugepage/enabled").map_or("not available".into(), |modes| {
                let chosen = modes.split(['[', ']']).nth(1).unwrap_or("unknown");
                format!("transparent: {chosen}")
            }),
        ),
    ]
}

/// Returns the size of memory pages, with the restriction that larger ones than usual have.
fn pages(bytes: usize) -> String {
    let kib = bytes >> 10;
    match bytes {
        4096 => "4 KiB".into(),
        _ => format!(
            "{kib} KiB: children that inline assembly makes, or code of another compiler by a system call, may be recorded \
             as their parents"
        ),
    }
}

/// Returns the ways of the hardware or the kernel to sample.
fn sampling() -> Vec<Item> {
    let paranoid: Result<i32, String> = read("/proc/sys/kernel/perf_event_paranoid")
        .and_then(|level| level.parse().ok())
        .ok_or("this kernel has no perf events".into());
    let faults = optional(
        "page-fault samples",
        match paranoid {
            Ok(level) if level <= 2 || rustix::process::geteuid().is_root() => {
                Ok(format!("perf_event_paranoid {level}"))
            }
            Ok(level) => Err(format!("perf_event_paranoid is {level}")),
            Err(missing) => Err(missing),
        },
        "sysctl kernel.perf_event_paranoid=2",
    );
    let tiers = tiers(&LinuxSampling);
    std::iter::once(faults).chain(tiers.iter().map(tier)).collect()
}

/// One way to sample: how it is opened and which command uses it, or why it is missing and the
/// alternative.
fn tier(tier: &Tier) -> Item {
    let name = match tier.kind {
        TierKind::Clock => "timer samples",
        TierKind::Counters => "counters",
        TierKind::Precise => "address samples",
    };
    let next = tier_use(tier.kind, tier.found.is_ok());
    let found = match &tier.found {
        Ok(events) => {
            let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
            Ok(format!("{}: {next}", names.join(", ")))
        }
        Err(why) => Err(tier_refusal(why)),
    };
    optional(name, found, next)
}

fn processor() -> Vec<Item> {
    let machine = Machine::host();
    let caches: Vec<String> = machine
        .levels
        .iter()
        .map(|level| format!("{} {}", level.name, memlode_report::text::bytes(level.bytes)))
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    let mut items = vec![
        information("processor", machine.description.clone()),
        information("cores", format!("{} ({threads} threads usable)", machine.cores)),
        information("caches", format!("{}, lines of {} B", caches.join(", "), machine.line_bytes)),
    ];
    let flags = read("/proc/cpuinfo").unwrap_or_default();
    let is_guest = flags.lines().any(|line| {
        line.strip_prefix("flags")
            .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"))
    });
    items.extend(oversized(&machine, is_guest));
    items
}

/// Most bytes of a cache that is the core's alone, or of its part of a shared one: no processor has more.
const MOST_PER_CORE: u64 = 16 << 20;

/// A guest sees a last level of which it has only a part: in one of hundreds of megabytes,
/// everything hits.
fn oversized(machine: &Machine, is_guest: bool) -> Option<Item> {
    let last = machine.levels.last()?;
    let is_larger = last.bytes / u64::from(machine.cores.max(1)) > MOST_PER_CORE;
    let names = memlode_machine::names();
    let kin = names.filter_map(|name| Machine::named(name).ok()).find(|kin| {
        kin.levels.last().is_some_and(|level| level.bytes < last.bytes)
            && kin.identities.iter().any(|identity| machine.identities.contains(identity))
    });
    let (bytes, cores) = (memlode_report::text::bytes(last.bytes), machine.cores);
    let proposed = kin.map_or("generic".to_string(), |kin| kin.name);
    (is_guest && is_larger).then(|| {
        let found = format!(
            "{} of {bytes} for {cores} cores: the host's, of which this guest has a part; what misses elsewhere hits in the \
             simulation of it",
            last.name
        );
        optional(
            "last level",
            Err(found),
            &format!("simulate a machine with a cache of its own: `memlode report -m {proposed}`"),
        )
    })
}

fn read(file: &str) -> Option<String> {
    memlode_files::read_text(file.as_ref(), memlode_files::SMALL).ok().map(|text| text.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_last_level_that_no_processor_has_is_told() {
        let mut machine = Machine::named("sapphire-rapids").expect("it is built in");
        machine.cores = 2;
        let last = machine.levels.len() - 1;
        machine.levels[last].bytes = 480 << 20;
        let item = oversized(&machine, true).expect("it is too large");
        assert!(item.found.starts_with("L3 of 480 MiB for 2 cores"), "{}", item.found);
        assert!(item.remedy.expect("a remedy").contains("-m sapphire-rapids"));
        assert!(oversized(&machine, false).is_none(), "what is there is there");
        machine.identities.clear();
        assert!(oversized(&machine, true).expect("still").remedy.expect("a remedy").contains("-m generic"));
        machine.levels[last].bytes = 32 << 20;
        assert!(oversized(&machine, true).is_none());
        for name in memlode_machine::names() {
            assert!(oversized(&Machine::named(name).expect("built in"), true).is_none(), "{name}");
        }
    }

    #[test]
    fn what_works_is_said() {
        let item =
            |work, ok: bool| required(work, "x", if ok { Ok("y".into()) } else { Err("n".into()) }, "get it");
        let items =
            [item(Work::Compile, false), item(Work::Record, true), optional("o", Err("n".into()), "")];
        assert!(!works(&items, Work::Compile) && works(&items, Work::Record));
        assert!(verdict(false, true).contains("compiled elsewhere can be recorded and reported"));
    }
}
