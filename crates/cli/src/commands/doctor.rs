//! `memlode doctor`: what this machine can do, what is missing, and how to get it.

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Parser;
use memlode_machine::Machine;
use serde::Serialize;

use super::{OK, PROBLEMS, print, print_json};
use crate::driver::toolchain::search_path;
use crate::install::{Install, LLVM_VERSIONS};

/// Say what this machine can do, what is missing, and how to get it
#[derive(Debug, Parser)]
#[command(after_help = "Exit status: 0 when programs can be compiled, recorded and reported; 3 when not.")]
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
    /// Nothing works without it.
    required: bool,
    /// What was found.
    found: String,
    /// What to do when it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let items = examine();
    let sound = items.iter().all(|item| item.ok || !item.required);
    if args.json {
        print_json(&serde_json::json!({ "ok": sound, "items": items }))?;
    } else {
        print(&text(&items, sound))?;
    }
    Ok(ExitCode::from(if sound { OK } else { PROBLEMS }))
}

fn text(items: &[Item], sound: bool) -> String {
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
    out += if sound {
        "\nPrograms can be compiled, recorded and reported on this machine.\n"
    } else {
        "\nSomething that nothing works without is missing: see above.\n"
    };
    out
}

fn examine() -> Vec<Item> {
    let mut items = compilers();
    items.extend(kernel());
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

fn required(name: &'static str, found: Result<String, String>, remedy: &str) -> Item {
    let ok = found.is_ok();
    let found = found.unwrap_or_else(|missing| missing);
    Item { name, ok, required: true, found, remedy: Some(remedy.to_string()).filter(|_| !ok) }
}

fn optional(name: &'static str, found: Result<String, String>, remedy: &str) -> Item {
    Item { required: false, ..required(name, found, remedy) }
}

fn information(name: &'static str, found: String) -> Item {
    Item { name, ok: true, required: false, found, remedy: None }
}

/// One compiler with its plug-in is enough: the best pair is the required one.
fn compilers() -> Vec<Item> {
    let mut items = Vec::new();
    let install = match Install::find() {
        Ok(install) => install,
        Err(error) => return vec![required("installation", Err(format!("{error:#}")), "unset MEMLODE_HOME")],
    };
    let usable = |version: u32| clang(version).is_some() && install.plugin(version).exists();
    let chosen = LLVM_VERSIONS.into_iter().find(|&v| usable(v)).unwrap_or(LLVM_VERSIONS[0]);
    for version in LLVM_VERSIONS {
        let needed = |name, found, remedy: &str| {
            if version == chosen { required(name, found, remedy) } else { optional(name, found, remedy) }
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
    items.push(required("run-time library", existing(&install.runtime()), "build memlode with `make`"));
    items.push(optional("…for -static", existing(&install.static_runtime()), "build memlode with `make`"));
    items
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
        required("memfd_create", memfd.map(|_| "works".into()).map_err(|error| error.to_string()), newer),
        required("pidfd_open", pidfd.map(|_| "works".into()).map_err(|error| error.to_string()), newer),
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

/// What the hardware or the kernel could sample.
fn sampling() -> Vec<Item> {
    let paranoid: Result<i32, String> = read("/proc/sys/kernel/perf_event_paranoid")
        .and_then(|level| level.parse().ok())
        .ok_or("this kernel has no perf events".into());
    let units = fs::read_dir("/sys/bus/event_source/devices")
        .map(|entries| {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    let units: Vec<String> = units;
    let unit =
        |names: &[&str]| units.iter().find(|unit| names.iter().any(|name| unit.starts_with(name))).cloned();
    let precise = unit(&["ibs_op", "arm_spe"]).or_else(|| {
        let loads = "/sys/bus/event_source/devices/cpu/events/mem-loads";
        fs::exists(loads).unwrap_or(false).then(|| "cpu/mem-loads (PEBS)".into())
    });
    let guest = "nothing here: run on bare metal, or on a guest that is given the unit";
    vec![
        optional(
            "page-fault samples",
            match paranoid.clone() {
                Ok(level) if level <= 2 || rustix::process::geteuid().is_root() => {
                    Ok(format!("perf_event_paranoid {level}"))
                }
                Ok(level) => Err(format!("perf_event_paranoid is {level}")),
                Err(missing) => Err(missing),
            },
            "sysctl kernel.perf_event_paranoid=2",
        ),
        optional(
            "cycle counter unit",
            unit(&["cpu", "armv"]).ok_or("no performance-monitoring unit".into()),
            guest,
        ),
        optional("address samples", precise.ok_or("neither PEBS, IBS nor SPE".into()), guest),
    ]
}

fn processor() -> Vec<Item> {
    let machine = Machine::host();
    let caches: Vec<String> = machine
        .levels
        .iter()
        .map(|level| format!("{} {}", level.name, memlode_report::text::bytes(level.bytes)))
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    vec![
        information("processor", machine.description.clone()),
        information("cores", format!("{} ({threads} threads usable)", machine.cores)),
        information("caches", format!("{}, lines of {} B", caches.join(", "), machine.line_bytes)),
    ]
}

fn read(file: &str) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.trim().to_string())
}
