//! `memlode cargo`: cargo's arguments, and their effects.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

use crate::{assert_one_sentence, executables, installation, memlode, stderr, stdout};

/// A folder with an installation of empty files, and tools that only print their arguments.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn new(llvm: &str) -> Stage {
        let stage = Stage { folder: TempDir::new().expect("a temporary folder") };
        for file in ["home/lib/memlode-pass-22.so", "home/lib/libmemlode_record.so"] {
            write(stage.folder.path(), file, "");
        }
        let version =
            format!("echo 'release: 1.95.0'; echo 'host: x86_64-none'; echo 'LLVM version: {llvm}'");
        let root = stage.folder.path().display().to_string();
        stage.script(
            "rustc",
            &format!("case \"$*\" in *-vV) {version};; *sysroot) echo {root};; *) echo rustc \"$@\";; esac"),
        );
        let library = "\0_RNvCs0_4core3fmt\0_RNvCsab1_7___rustc12___rust_alloc\0";
        write(stage.folder.path(), "lib/rustlib/x86_64-none/lib/liballoc-1.rlib", library);
        stage.script(
            "cargo",
            "case \"$*\" in *metadata*) echo \"{\\\"target_directory\\\": \\\"$PWD/target\\\"}\";; \
             *) echo cargo \"$@\"; env | grep -E '^(CARGO_BUILD_TARGET|CARGO_TARGET_DIR|.*WRAPPER)=' | sort; exit 7;; esac",
        );
        stage.script("clang-22", "");
        stage.script("ld.lld-22", "");
        stage
    }

    fn script(&self, name: &str, body: &str) {
        let folder = self.folder.path().join("bin");
        fs::create_dir_all(&folder).expect("a folder");
        executables::write(&folder.join(name), format!("#!/bin/sh\n{body}\n").as_bytes());
    }

    fn command(&self) -> Command {
        let mut command = memlode();
        for variable in ["RUSTC", "RUSTC_WRAPPER", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET"] {
            command.env_remove(variable);
        }
        command
            .env("MEMLODE_HOME", self.folder.path().join("home"))
            .env("PATH", format!("{}:/usr/bin:/bin", self.folder.path().join("bin").display()))
            .current_dir(self.folder.path());
        command
    }

    /// Standard output of `memlode cargo ARGUMENTS`, with the folder's name as `~`.
    fn told(&self, arguments: &str) -> String {
        let output =
            self.command().arg("cargo").args(arguments.split_whitespace()).output().expect("it runs");
        stdout(&output).replace(self.folder.path().to_str().expect("UTF-8"), "~")
    }
}

fn write(folder: &Path, name: &str, content: &str) {
    let file = folder.join(name);
    fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
    fs::write(file, content).expect("a file");
}

#[test]
fn cargo_is_told_by_its_environment_and_a_runner() {
    let stage = Stage::new("22.1.2");
    let output = stage.command().args(["cargo", "build", "--release"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(7), "the status is cargo's own");
    let told = stage.told("--top 3 -o trace run -p a --release -- --flag");
    assert!(told.contains("--config target.x86_64-none.runner=[\""), "{told}");
    let words = r#""run","--output","~/trace","--top","3","--"] run -p a --release -- --flag"#;
    assert!(told.contains(words), "{told}");
    let told_all = stage.told(
        "--live --sim --pages 4KiB,2M@0x1000-ffff000,1G@heap,8K@all --cores 2,0 --placement node:1 --rules lru --by type,all -m zen4 run",
    );
    let words = concat!(
        r#""run","--live","--machine","zen4","--sim","--pages","4KiB","--pages","2M@0x1000-ffff000","#,
        r#""--pages","1G@heap","--pages","8K@all","--cores","2","--cores","0","--placement","node:1","#,
        r#""--rules","lru","--by","type","--by","all","--"]"#
    );
    assert!(told_all.contains(words), "{told_all}");
    let told_all = stage.told("--analyse reuse --analyse shared:least=1 --timeline --every 20ms test");
    let words = concat!(
        r#""--analyse","reuse","--analyse","shared:least=1","--timeline","--every","20ms","#,
        r#""--allow-empty","--"] test"#
    );
    assert!(told_all.contains(words), "{told_all}");
    assert!(told.contains("CARGO_BUILD_TARGET=x86_64-none\n"), "{told}");
    assert!(told.contains("CARGO_TARGET_DIR=~/target/memlode-cargo\n"), "{told}");
    assert!(told.contains("\nRUSTC_WRAPPER=~/target/memlode-cargo/memlode-rustc"), "{told}");
    assert!(!told.contains("MEMLODE_RUSTC_WRAPPER"), "{told}");

    let told = stage.told("+beta test --target-dir elsewhere");
    assert!(told.starts_with("cargo +beta --config "), "{told}");
    assert!(told.contains(r#""--allow-empty","--"] test --target-dir elsewhere"#), "{told}");
    assert!(told.contains("\nRUSTC_WRAPPER=~/elsewhere/memlode-rustc"), "{told}");

    let printed = stage.told("--print build");
    assert!(printed.starts_with("CARGO_BUILD_TARGET=x86_64-none "), "{printed}");
    assert!(printed.contains("-Clink-arg=--load-pass-plugin=~/home/lib/memlode-pass-22.so"), "{printed}");
    // The symbols by which this toolchain allocates, and older ones did.
    assert!(printed.contains(" MEMLODE_RUST_ALLOCATOR_CRATE=_RNvCsab1_7___rustc "), "{printed}");
    let apart = "-force-attribute=_RNvCsab1_7___rustc14___rust_dealloc:noinline";
    assert!(printed.contains(apart), "{printed}");
    write(stage.folder.path(), "lib/rustlib/x86_64-none/lib/liballoc-1.rlib", "__rust_alloc");
    let printed = stage.told("--print build");
    assert!(printed.contains("-force-attribute=__rust_dealloc:noinline"), "{printed}");
    fs::remove_dir_all(stage.folder.path().join("lib")).expect("a folder");
    let output = stage.command().args(["cargo", "build"]).output().expect("it runs");
    assert_one_sentence(&output, &["cannot read Rust's standard library in "]);
}

#[test]
fn the_wrapper_adds_to_crates_of_the_program_only() {
    let stage = Stage::new("22.1.2");
    stage.told("build");
    let wrapper = stage.folder.path().join("target/memlode-cargo/memlode-rustc");
    let run = |arguments: &str, inner: &str| {
        let mut command = std::process::Command::new(&wrapper);
        command.args(arguments.split_whitespace()).env("MEMLODE_HOME", stage.folder.path().join("home"));
        command.env("PATH", stage.folder.path().join("bin")).env("MEMLODE_RUSTC_WRAPPER", inner);
        stdout(&command.output().expect("the wrapper runs"))
    };
    assert_eq!(
        run("rustc --crate-name build_script_build b.rs", ""),
        "rustc --crate-name build_script_build b.rs\n"
    );
    let optimised = run("rustc --target x86_64-none -C opt-level=3 a.rs", "");
    assert!(
        optimised.starts_with("rustc --target x86_64-none -C opt-level=3 a.rs -Clinker-plugin-lto "),
        "{optimised}"
    );
    assert!(!optimised.contains("newpm-passes"), "{optimised}");
    let unoptimised = run("rustc --target x86_64-none a.rs", "");
    assert!(unoptimised.contains("-Clink-arg=--lto-newpm-passes=memlode-names,"), "{unoptimised}");
    let file = stage.folder.path().join("arguments");
    fs::write(&file, "--target\nx86_64-none\n-Copt-level=2\na.rs\n").expect("a file");
    let long = run(&format!("rustc @{}", file.display()), "");
    assert!(long.contains("-Clinker-plugin-lto") && !long.contains("newpm-passes"), "{long}");
    stage.script("cache", "echo cached \"$1\"");
    assert_eq!(run("rustc -vV", "cache"), "cached rustc\n");
}

#[test]
fn what_cannot_be_done_is_said_in_a_sentence() {
    for (llvm, arguments, parts) in [
        ("18.1.7", "build", ["rustc 1.95.0 is built on LLVM 18.1.7", "needs LLVM 22"]),
        ("23.0.0", "build", ["LLVM 23.0.0", "needs LLVM 22"]),
        ("22.1.2", "build --target wasm32-wasip1", ["--target wasm32-wasip1", "x86_64-none"]),
        ("22.1.2", "--allocators none.txt build", ["none.txt", "no such file"]),
    ] {
        let stage = Stage::new(llvm);
        let output = stage.command().arg("cargo").args(arguments.split(' ')).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        assert_one_sentence(&output, &parts);
    }
    let stage = Stage::new("22.1.2");
    fs::remove_file(stage.folder.path().join("bin/ld.lld-22")).expect("it was there");
    let output = stage.command().env("PATH", stage.folder.path().join("bin")).args(["cargo", "b"]).output();
    assert_one_sentence(&output.expect("it runs"), &["ld.lld-22", "apt-get install lld-22"]);
}

const MANIFEST: &str = "[package]\nname = \"orders\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n";

const PROGRAM: &str = r#"
pub struct Order { pub id: u64, pub price: u32, pub side: Side }
pub enum Side { Buy { limit: u32 }, Sell }

#[inline(never)]
pub fn total(orders: &[Order]) -> u64 {
    let mut sum = 0;
    for order in orders {
        sum += u64::from(order.price);
    }
    sum
}

#[inline(never)]
pub fn orders(number: u64) -> Vec<Order> {
    let mut orders = Vec::new();
    for id in 0..number {
        let side = if id % 2 == 0 { Side::Buy { limit: id as u32 } } else { Side::Sell };
        orders.push(Order { id, price: id as u32 * 3, side });
    }
    orders
}

#[test]
fn few() { assert_eq!(total(&orders(10)), 135); }

#[test]
fn none() { assert_eq!(total(&[]), 0); }
"#;

const MAIN: &str = r#"
fn main() {
    let number = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let orders = orders::orders(number);
    let limits: u64 = orders.iter().map(|o| match o.side { orders::Side::Buy { limit } => limit as u64, _ => o.id }).sum();
    println!("{} {limits} {} {}", orders::total(&orders), env!("BUILT"), cfg!(marked));
    std::process::exit(3);
}
"#;

const BUILD: &str = "fn main() { println!(\"cargo::rustc-env=BUILT=by-script\"); \
                     println!(\"cargo::rustc-check-cfg=cfg(marked)\"); }";

/// The crate of these texts, and memlode's command in it.
fn package() -> (TempDir, impl Fn(&str) -> Command) {
    let folder = TempDir::new().expect("a temporary folder");
    for (name, text) in
        [("Cargo.toml", MANIFEST), ("src/lib.rs", PROGRAM), ("src/main.rs", MAIN), ("build.rs", BUILD)]
    {
        write(folder.path(), name, text);
    }
    let path = folder.path().to_path_buf();
    let command = move |arguments: &str| {
        let mut command = memlode();
        // Those of the cargo that runs this test are not the user's.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_") && name != "CARGO_HOME"
                || name.starts_with("RUST") && name != "RUSTUP_HOME"
            {
                command.env_remove(&*name);
            }
        }
        command.env("MEMLODE_HOME", installation()).env("CARGO_NET_OFFLINE", "true").current_dir(&path);
        command.arg("cargo").args(arguments.split_whitespace());
        command
    };
    (folder, command)
}

/// Reads of a member, over all lines.
fn reads(report: &serde_json::Value, ty: &str, member: &str) -> u64 {
    let fields = report["fields"].as_array().expect("a table");
    let of = |field: &&serde_json::Value| field["type"] == ty && field["member"] == member;
    fields.iter().filter(of).map(|field| field["reads"].as_u64().expect("a number")).sum()
}

/// 9000 orders, whose price is read once each: exactly that is counted, however the program was built.
#[test]
fn every_read_is_counted_at_every_level_of_optimisation() {
    let (folder, command) = package();
    for (arguments, price) in [
        ("-o trace --force --json --report-to report.json run --quiet --release -- 9000", 9000),
        ("-o trace --force --json --report-to report.json run --quiet -- 9000", 9000),
        // One module and no summary of it; the same road in the end.
        ("-o trace --force --json --report-to report.json run --quiet --profile fat -- 9000", 9000),
    ] {
        let profile =
            "[profile.fat]\ninherits = \"release\"\nlto = \"fat\"\ncodegen-units = 1\npanic = \"abort\"\n";
        write(folder.path(), "Cargo.toml", &format!("{MANIFEST}{profile}"));
        let output = command(arguments).env("RUSTFLAGS", "--cfg marked").output().expect("it runs");
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert_eq!(stdout(&output), "121486500 40495500 by-script true\n");
        let text = fs::read_to_string(folder.path().join("report.json")).expect("a report");
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(reads(&report, "orders::Order", "price"), price, "{arguments}: {}", report["fields"]);
        // The vector that grew, twelve times, inside the standard library: the function that pushes is named.
        let vector =
            report["objects"].as_array().expect("a table").iter().find(|row| {
                row["kind"] == "heap" && row["count"] == 12 && row["path"][0] == "orders::orders"
            });
        assert!(vector.is_some(), "{arguments}: {}", report["objects"]);
    }
    let target = folder.path().join("target");
    assert!(!target.join("release").exists(), "other builds are left as they are");
    let scripts = fs::read_dir(target.join("memlode-cargo/release/build")).expect("build scripts");
    for script in scripts.map(|entry| entry.expect("an entry").path().join("build-script-build")) {
        let bytes = fs::read(&script).unwrap_or_default();
        assert!(!bytes.windows(11).any(|window| window == b"memlode_seg"), "{} records", script.display());
    }
}

/// Cargo rebuilds linked crates, and no others, when the plug-in's options change; else it has
/// nothing to do.
#[test]
fn what_is_to_be_recorded_may_change_between_builds() {
    let (folder, command) = package();
    // Cargo takes whatever is new in the package's folder for an input of its build script.
    let elsewhere = TempDir::new().expect("a temporary folder");
    let options = format!("--filter {}", elsewhere.path().join("filter").display());
    let build = |options: &str| {
        let output = command(&format!("{options} build --release")).output().expect("it runs");
        let told = stderr(&output);
        assert!(output.status.success(), "{told}");
        told
    };
    let price = || {
        let program = folder.path().join("target/memlode-cargo/x86_64-unknown-linux-gnu/release/orders");
        let output = memlode()
            .current_dir(elsewhere.path())
            .args(["run", "-o", "trace", "--force", "--json", "--report-to", "report.json", "--"])
            .arg(program)
            .arg("9000")
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        let text = fs::read_to_string(elsewhere.path().join("report.json")).expect("a report");
        reads(&serde_json::from_str(&text).expect("JSON"), "orders::Order", "price")
    };
    let filter = |rule: &str| write(elsewhere.path(), "filter", rule);
    build("");
    assert!(!build("").contains("Compiling"), "nothing has changed");
    assert_eq!(price(), 9000);
    filter("exclude function=orders::total\n");
    let told = build(&options);
    assert!(told.contains("Compiling orders"), "{told}");
    assert_eq!(price(), 0);
    assert!(!build(&options).contains("Compiling"), "nothing has changed");
    filter("exclude function=orders::orders\n");
    build(&options);
    assert_eq!(price(), 9000);
    build("--values");
    assert!(build("").contains("Compiling"), "without --values it is another program");
}

#[test]
fn tests_are_recorded_and_those_that_do_nothing_pass() {
    let (folder, command) = package();
    let output = command("--no-report test --quiet").output().expect("it runs");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("2 passed"), "{}", stdout(&output));
    let traces = fs::read_dir(folder.path()).expect("a folder").filter(|entry| {
        entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with("memlode-orders-"))
    });
    assert!(traces.count() >= 1, "{}", stderr(&output));
}
