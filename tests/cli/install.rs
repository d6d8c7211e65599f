//! `make install`: a prefix that works wherever it is moved.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::{executables, installation, memlode, stderr, stdout};

const PROGRAM: &str = r#"
#include <memlode.h>
struct item { long key; char payload[56]; };
struct item items[1 << 14];
__attribute__((noinline)) static long sum(void) {
  long sum = 0;
  for (int i = 0; i < 1 << 14; i++)
    sum += items[i].key;
  return sum;
}
int main(void) {
  memlode_start("all");
  long all = sum();
  memlode_stop("all");
  return (int)all;
}
"#;

/// Runs what `make install` does after it has built.
fn install(prefix: &str, destination: &Path, folder: &Path) -> Output {
    installation();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../setup/install.sh");
    let output = Command::new(script)
        .arg(prefix)
        .current_dir(folder)
        .env("HOME", folder)
        .env("DESTDIR", destination)
        .output()
        .expect("the script runs");
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

#[test]
fn a_prefix_that_was_moved_compiles_records_and_reports() {
    let folder = TempDir::new().expect("a temporary folder");
    let installed = install("~/first", Path::new(""), folder.path());
    let first = folder.path().join("first");
    let line = format!("export PATH=\"{}/bin:$PATH\"", first.display());
    assert!(stdout(&installed).contains(&line), "{}", stdout(&installed));
    // The binary under test, and not what `make` built.
    executables::copy(assert_cmd::cargo::cargo_bin!("memlode"), &first.join("bin/memlode"));
    let prefix = folder.path().join("moved, and not only once");
    fs::rename(&first, &prefix).expect("a new place");

    let work = folder.path().join("work");
    fs::create_dir(&work).expect("a folder");
    fs::write(work.join("items.c"), PROGRAM).expect("a file");
    fs::write(work.join("items.cc"), PROGRAM).expect("a file");
    for (compiler, source) in [
        ("memlode-cc", "items.c"),
        ("memlode-clang", "items.c"),
        ("memlode-c++", "items.cc"),
        ("memlode-clang++", "items.cc"),
    ] {
        let run = |program: &str, arguments: &[&str]| {
            let output = Command::new(program)
                .args(arguments)
                .current_dir(&work)
                .env("PATH", format!("{}:/usr/bin:/bin", prefix.join("bin").display()))
                .env_remove("MEMLODE_HOME")
                .output()
                .unwrap_or_else(|error| panic!("{program}: {error}"));
            assert!(output.status.success(), "{compiler}, {program}: {}", stderr(&output));
            output
        };
        run(compiler, &["-O2", source, "-o", "items"]);
        let command = ["run", "--region", "all", "--machine", "zen4", "-o", compiler, "--", "./items"];
        let output = run("memlode", &command);
        assert!(stderr(&output).contains("item.key"), "{}", stderr(&output));
    }
}

#[test]
fn a_package_is_made_below_another_root() {
    let folder = TempDir::new().expect("a temporary folder");
    let output = install("/usr", &folder.path().join("root"), folder.path());
    for file in ["bin/memlode", "bin/memlode-fc", "lib/libmemlode_record.so", "include/memlode.h"] {
        assert!(folder.path().join("root/usr").join(file).exists(), "{file}");
    }
    assert!(!stdout(&output).contains("PATH"), "{}", stdout(&output));
    let share = folder.path().join("root/usr/share");
    for file in ["zsh/site-functions/_memlode", "fish/vendor_completions.d/memlode.fish"] {
        assert!(fs::metadata(share.join(file)).is_ok_and(|file| file.len() > 1000), "{file}");
    }
    // Each command that help names has a page.
    let help = memlode().arg("--help").output().expect("memlode runs");
    let help = stdout(&help);
    let (commands, _) = help.split_once("\nOptions:\n").expect("a list");
    let commands = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() > 30, "{commands:?}");
    for name in commands {
        let page = fs::read_to_string(share.join(format!("man/man1/memlode-{name}.1"))).unwrap_or_default();
        assert!(page.contains(&format!(".TH memlode-{name} 1")), "{name}: {page}");
    }
}

/// Bash itself completes: commands, options of one, and values.
#[test]
fn bash_completes_commands_options_and_values() {
    let folder = TempDir::new().expect("a temporary folder");
    install("/usr", folder.path(), folder.path());
    let script = folder.path().join("usr/share/bash-completion/completions/memlode");
    let complete = |words: &[&str]| {
        let before = words[words.len() - 2];
        let ask = format!(
            "source '{}'; COMP_WORDS=({}); COMP_CWORD={}; _memlode memlode '{}' '{before}'; printf '%s ' \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
        );
        let output = Command::new("bash").args(["--norc", "-c", &ask]).output().expect("bash runs");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    assert_eq!(complete(&["memlode", "repo"]), "report ");
    assert_eq!(complete(&["memlode", "report", "--aga"]), "--again ");
    assert_eq!(complete(&["memlode", "report", "--by", "fi"]), "field ");
}
