//! Builds as people have them: two steps, caches in front, objects from elsewhere, options of other compilers.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::{assert_one_sentence, installation, memlode, stderr, stdout};

/// A folder in which programs are built for real.
struct Workshop(TempDir);

impl Workshop {
    fn new(files: &[(&str, &str)]) -> Workshop {
        let folder = TempDir::new().expect("a temporary folder");
        for (name, content) in files {
            fs::write(folder.path().join(name), content).expect("a file");
        }
        Workshop(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run_with(&self, words: &str, variables: &[(&str, &str)]) -> Output {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).env("HOME", self.path()).env_remove("XDG_CACHE_HOME");
        command.current_dir(self.path()).args(words.split_whitespace());
        for (name, value) in variables {
            command.env(name, value);
        }
        command.output().expect("memlode runs")
    }

    fn run(&self, words: &str) -> Output {
        let output = self.run_with(words, &[]);
        assert!(output.status.success(), "{words}: {}", stderr(&output));
        output
    }

    /// Returns how often each type's members are read or written when the program runs.
    fn events(&self, program: &str, what: &str) -> usize {
        self.run(&format!("record --force -o trace -- ./{program}"));
        stdout(&self.run("dump trace")).lines().filter(|line| line.contains(what)).count()
    }
}

const ITEMS: &str = "\
struct item { long key; long other[7]; };
struct item items[100];
int main(void) {
  long sum = 0;
  for (int i = 0; i < 100; i++)
    sum += items[i].key;
  return (int)sum;
}
";

#[test]
fn a_module_in_two_steps_is_recorded() {
    let workshop = Workshop::new(&[
        (
            "items.cppm",
            "export module items;\n\
             export struct item { long key; long other[7]; };\n\
             export [[gnu::noinline]] long sum(item *items, int n) {\n\
               long sum = 0;\n\
               for (int i = 0; i < n; i++)\n\
                 sum += items[i].key;\n\
               return sum;\n\
             }\n",
        ),
        ("main.cc", "import items;\nitem table[100];\nint main() { return (int)sum(table, 100); }\n"),
    ]);
    workshop.run("c++ -std=c++20 -O1 --precompile items.cppm -o items.pcm");
    workshop.run("c++ -std=c++20 -O1 -c items.pcm -o items.o");
    workshop.run("c++ -std=c++20 -O1 -fmodule-file=items=items.pcm main.cc items.o -o main");
    assert_eq!(workshop.events("main", "key"), 100);
}

#[test]
fn steps_of_their_own_find_the_header_and_say_nothing_under_werror() {
    let workshop = Workshop::new(&[("items.c", &format!("#include <memlode.h>\n{ITEMS}"))]);
    workshop.run("cc -Wall -Werror -E items.c -o items.i");
    workshop.run("cc -Wall -Werror -M items.c");
    for steps in [
        &["cc -Wall -Werror -O1 -c items.i -o items.o"][..],
        &["cc -Wall -Werror -O1 -x cpp-output -c items.i -o items.o"],
        &[
            "cc -Wall -Werror -O1 -S -emit-llvm items.i -o items.ll",
            "cc -Wall -Werror -O1 -c items.ll -o items.o",
        ],
    ] {
        for step in steps {
            assert_eq!(stderr(&workshop.run(step)), "", "{step}");
        }
        workshop.run("cc items.o -o items");
        assert_ne!(workshop.events("items", "items.c"), 0);
    }
    // A build system that asks where headers are, as Bazel does, hears of ours.
    let asked = workshop.run("cc -E -xc -v /dev/null");
    let found = stderr(&asked)
        .lines()
        .any(|line| line.trim() == installation().join("include").display().to_string());
    assert!(found || stderr(&asked).contains("/memlode/include"), "{}", stderr(&asked));
}

#[test]
fn options_that_clang_refuses_are_named_with_the_cure() {
    let workshop = Workshop::new(&[("items.c", ITEMS), ("wrong.c", "int main(void) { return x; }\n")]);
    for (options, parts) in [
        (
            "-fanalyzer -fconserve-stack",
            &["-fanalyzer", "-fconserve-stack are no options of clang 22", "leave them out"][..],
        ),
        (
            "-Wall -Werror -Wlogical-op",
            &["-Wlogical-op is no option of clang", "-Wno-unknown-warning-option"],
        ),
    ] {
        let output = workshop.run_with(&format!("cc {options} -c items.c"), &[]);
        assert_eq!(output.status.code(), Some(1));
        let note = stderr(&output);
        let note = note.lines().last().expect("a note");
        assert!(note.starts_with("memlode: note: "), "{note}");
        for part in parts {
            assert!(note.contains(part), "`{part}` is not in: {note}");
        }
    }
    // What is wrong with the program is clang's to say.
    let output = workshop.run_with("cc -Wall -Wlogical-op -c wrong.c", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!stderr(&output).contains("memlode:"), "{}", stderr(&output));
}

#[test]
fn objects_that_another_compiler_links_tell_it_what_is_missing() {
    let workshop = Workshop::new(&[("items.c", ITEMS)]);
    workshop.run("cc -O1 -c items.c -o items.o");
    for compiler in ["gcc", "clang-22"] {
        let output = Command::new(compiler)
            .current_dir(workshop.path())
            .args(["items.o", "-o", "items"])
            .output()
            .expect("a compiler");
        assert!(!output.status.success());
        assert!(stderr(&output).contains("link_with_memlode_cc"), "{compiler}: {}", stderr(&output));
    }
}

#[test]
fn another_c_library_is_refused() {
    let workshop = Workshop::new(&[("items.c", ITEMS)]);
    for target in ["--target=x86_64-linux-musl", "-target x86_64-alpine-linux-musl"] {
        let output = workshop.run_with(&format!("cc {target} -c items.c"), &[]);
        assert_eq!(output.status.code(), Some(1));
        assert_one_sentence(&output, &["musl", "glibc only", "without --target"]);
    }
}

/// Hits and misses of the cache so far.
fn counters(workshop: &Workshop) -> (u64, u64) {
    let output = Command::new("ccache")
        .arg("--print-stats")
        .env("CCACHE_DIR", workshop.path().join("cache"))
        .output()
        .expect("ccache");
    let text = stdout(&output);
    let of = |name: &str| -> u64 {
        let values = text.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        values.sum()
    };
    (of("direct_cache_hit") + of("preprocessed_cache_hit"), of("cache_miss"))
}

#[test]
fn ccache_behind_us_misses_whatever_is_new() {
    let workshop =
        Workshop::new(&[("items.c", ITEMS), ("filter", "exclude type=none\n"), ("other", "exclude\n")]);
    let cache = workshop.path().join("cache").display().to_string();
    let ours = [("MEMLODE_CCACHE", "1"), ("CCACHE_DIR", &cache)];
    let build = |variables: &[(&str, &str)], options: &str| {
        let (hits, misses) = counters(&workshop);
        let all = [&ours[..], variables].concat();
        let output = workshop.run_with(&format!("cc {options} -O1 -c items.c -o items.o"), &all);
        assert!(output.status.success(), "{}", stderr(&output));
        let (more_hits, more_misses) = counters(&workshop);
        workshop.run("cc items.o -o items");
        (
            (more_hits - hits, more_misses - misses),
            fs::read(workshop.path().join("items.o")).expect("an object"),
        )
    };
    let (hit, miss) = ((1, 0), (0, 1));
    let (first, object) = build(&[], "");
    assert_eq!(first, miss);
    assert_eq!(build(&[], ""), (hit, object.clone()));
    // Another filter, the same filter with other rules, an option, a variable.
    assert_eq!(build(&[], "--filter filter").0, miss);
    assert_eq!(build(&[], "--filter filter").0, hit);
    assert_eq!(build(&[("MEMLODE_FILTER", "filter")], "").0, miss, "another name of it");
    fs::write(workshop.path().join("filter"), "exclude\n").expect("a file");
    let (other, filtered) = build(&[], "--filter filter");
    assert_eq!(other, miss);
    assert_ne!(filtered, object);
    assert_eq!(build(&[], "--values").0, miss);
    assert_eq!(build(&[("MEMLODE_VALUES", "1")], "").0, hit, "the same in other words");
    assert_eq!(build(&[], "--fidelity source").0, miss);
    assert_eq!(build(&[], ""), (hit, object));
}

/// sccache does not hash the additional files of ccache.
#[test]
fn other_caches_behind_us_are_refused() {
    let workshop = Workshop::new(&[("items.c", ITEMS)]);
    let cache = workshop.path().join("sccache");
    std::os::unix::fs::symlink("/usr/bin/env", &cache).expect("a link");
    let output = workshop.run_with("cc -c items.c", &[("MEMLODE_CCACHE", &cache.display().to_string())]);
    assert_one_sentence(&output, &["sccache", "another filter", "MEMLODE_CCACHE=1"]);
}

#[test]
fn ccache_in_front_of_us_keeps_nothing() {
    let workshop = Workshop::new(&[("items.c", ITEMS)]);
    let binary = assert_cmd::cargo::cargo_bin!("memlode");
    std::os::unix::fs::symlink(binary, workshop.path().join("memlode-cc")).expect("a link");
    let ccache = |depend: bool| {
        let mut command = Command::new("ccache");
        command
            .arg(workshop.path().join("memlode-cc"))
            .args(["-O1", "-MD", "-c", "items.c", "-o", "items.o"])
            .current_dir(workshop.path())
            .env("MEMLODE_HOME", installation())
            .env_remove("MEMLODE_CCACHE")
            .env("CCACHE_DIR", workshop.path().join("cache"));
        if depend {
            command.env("CCACHE_DEPEND", "1");
        }
        command.output().expect("ccache")
    };
    for _ in 0..2 {
        let output = ccache(false);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(counters(&workshop).0, 0, "an object of an unknown filter was taken");
    }
    let output = ccache(true);
    assert!(!output.status.success());
    assert!(stderr(&output).contains("set MEMLODE_CCACHE=1"), "{}", stderr(&output));
}

/// A crate's build script compiles C by the cc crate, of the version that memlode's own dependencies need.
#[test]
fn the_cc_crate_compiles_with_us_if_it_is_told_to() {
    let lock = include_str!("../../Cargo.lock");
    let version = lock.split("name = \"cc\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    let manifest = format!(
        "[package]\nname = \"mixed\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [build-dependencies]\ncc = \"={}\"\n",
        version.expect("cc")
    );
    let workshop = Workshop::new(&[
        ("Cargo.toml", &manifest),
        ("build.rs", "fn main() {\n    cc::Build::new().file(\"sum.c\").compile(\"sum\");\n}\n"),
        (
            "sum.c",
            "long sum(const long *of, long n) {\n  long s = 0;\n  while (n--)\n    s += *of++;\n  return s;\n}\n",
        ),
        (
            "main.rs",
            "unsafe extern \"C\" {\n    fn sum(of: *const i64, n: i64) -> i64;\n}\nfn main() {\n    \
             let all: Vec<i64> = (0..100).collect();\n    \
             assert_eq!(unsafe { sum(all.as_ptr(), 100) }, 4950);\n}\n",
        ),
    ]);
    fs::create_dir(workshop.path().join("src")).expect("a folder");
    fs::rename(workshop.path().join("main.rs"), workshop.path().join("src/main.rs")).expect("a file");
    let binary = assert_cmd::cargo::cargo_bin!("memlode");
    std::os::unix::fs::symlink(binary, workshop.path().join("memlode-cc")).expect("a link");
    let compiler = workshop.path().join("memlode-cc").display().to_string();
    let loaded = |compiler: &str| {
        let mut command = memlode();
        command.env("MEMLODE_HOME", installation()).env("CC", compiler).current_dir(workshop.path());
        for variable in ["RUSTC", "RUSTC_WRAPPER", "CARGO_TARGET_DIR", "CARGO_BUILD_TARGET"] {
            command.env_remove(variable);
        }
        let output = command
            .args(["cargo", "-o", "trace", "--force", "run", "--release", "--offline"])
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", stderr(&output));
        let dump = stdout(&workshop.run("dump trace"));
        let bytes = |line: &str| line.split('\t').nth(4).and_then(|bytes| bytes.parse::<u64>().ok());
        dump.lines().filter(|line| line.contains("sum.c:4")).filter_map(bytes).sum::<u64>()
    };
    assert_eq!(loaded(&compiler), 800);
    assert_eq!(loaded("gcc"), 0);
}
