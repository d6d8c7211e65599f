//! Measurements of a call from inside a program, compared with its source.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use memlode_measure::Error;
use memlode_measure::inside::{CoreFacts, Facts, Names, Repeated, Steps, facts, step};
use memlode_measure::process::{AddressLayout, Launch, StopFlag};

const LONGEST: Duration = Duration::from_secs(60);

fn compiled(folder: &Path, source: &str, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/bias/programs").join(source);
    let program = folder.join("program");
    let status =
        Command::new("clang-22").args(options).arg("-g").arg(source).arg("-o").arg(&program).status();
    assert!(status.expect("clang-22 runs").success());
    program
}

fn started(program: &Path, function: &str) -> Result<(Repeated, Names), Error> {
    let launch = Launch { words: vec![program.into()], ..Launch::default() };
    let mut names = None;
    let call = Repeated::start(
        &launch,
        AddressLayout::GIVEN,
        function,
        |tracee| {
            let found = names.insert(Names::of(&tracee.file()?)?);
            found.loaded_at(tracee.entry()?);
            found.function(function)
        },
        &Arc::new(StopFlag::new(false)),
        LONGEST,
    )?;
    Ok((call, names.expect("names")))
}

fn looked(call: &mut Repeated, shift: u64) -> (Steps, Facts) {
    let (back, stack) = call.rewind(shift).expect("a call");
    let steps = step(call.tracee(), back, stack, 1_000_000).expect("its steps");
    let facts = facts(&steps, CoreFacts::of_host());
    (steps, facts)
}

/// The loop loads `inc` four times a round and `g` twice, and stores to `i`, `j`, `k` and `g`: without optimisation these are all
/// accesses that it makes, in static and position-independent programs alike.
#[test]
fn accesses_are_those_of_the_source() {
    for options in [&["-O0"][..], &["-O0", "-fno-pie", "-no-pie"], &["-O0", "-static"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut call, names) =
            started(&compiled(folder.path(), "kernel.c", options), "work").expect("a call");
        let (steps, _) = looked(&mut call, 0);
        let count = |data: &str, is_store: bool| {
            let is = |access: &&memlode_measure::inside::SteppedAccess| {
                access.is_store == is_store && names.name(access).data == data
            };
            steps.accesses.iter().filter(is).count()
        };
        for (data, loads, stores) in [
            ("i", 4096, 4096),
            ("j", 4096, 4096),
            ("k", 4096, 4096),
            ("inc", 3 * 4096, 1),
            ("g", 2 * 4096 + 1, 4097),
        ] {
            assert_eq!((count(data, false), count(data, true)), (loads, stores), "{data} {options:?}");
        }
        let line = names.place(steps.accesses[20].instruction);
        assert!(line.starts_with("work kernel.c:"), "{line}");
    }
}

/// Over a page, the stack's variables agree in the low 12 bits with the static ones in one context, or in none if their addresses
/// differ in the low four bits; contexts a page apart see the same.
#[test]
fn contexts_a_page_apart_alias_alike() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(folder.path(), "kernel.c", &["-O0", "-fno-pie", "-no-pie"]);
    let (mut call, names) = started(&program, "work").expect("a call");
    // Where the pair must be, by the addresses of one call.
    let (steps, _) = looked(&mut call, 0);
    let address = |data: &str| {
        let found = steps.accesses.iter().find(|access| names.name(access).data == data);
        found.unwrap_or_else(|| panic!("{data}")).address
    };
    let apart = |data: &str, of: &str| address(of).wrapping_sub(address(data)) % 4096;
    let (from, to) = [("i", "inc"), ("j", "inc"), ("k", "inc"), ("i", "g"), ("j", "g"), ("k", "g")]
        .into_iter()
        .find(|(data, of)| apart(data, of) % 16 == 0)
        .expect("a pair that can agree");
    let shift = apart(from, to);
    for page in [0, 4096] {
        let (steps, facts) = looked(&mut call, shift + page);
        let pairs: Vec<(String, String)> = facts
            .pairs
            .iter()
            .map(|pair| {
                let name = |at: usize| names.name(&steps.accesses[at]).data;
                (name(pair.load), name(pair.store))
            })
            .collect();
        assert!(pairs.contains(&(to.into(), from.into())), "{pairs:?} at {}", shift + page);
        assert_eq!(looked(&mut call, shift + page + 2048).1.aliases, 0);
    }
}

#[test]
fn what_cannot_be_called_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(folder.path(), "kernel.c", &["-O0"]);
    let error = |function: &str| started(&program, function).err().expect("an error").to_string();
    assert!(error("wrok").contains("no function `wrok`"), "{}", error("wrok"));
    let error = started(Path::new("/nonexistent"), "main").err().expect("an error").to_string();
    assert!(error.contains("/nonexistent"), "{error}");
}

/// A measurement that is stopped does not wait for the program.
#[test]
fn a_program_that_never_comes_there_is_ended() {
    let launch = Launch { words: vec!["sleep".into(), "1000".into()], ..Launch::default() };
    let stop = Arc::new(StopFlag::new(false));
    let find = |tracee: &memlode_measure::inside::Tracee| {
        // Where the program begins is behind it soon: this is never reached again.
        Ok(tracee.entry()? + 1)
    };
    let short = Duration::from_millis(300);
    let error = Repeated::start(&launch, AddressLayout::GIVEN, "nothing", find, &stop, short).err();
    assert!(error.is_some());
}

/// gcc gives the versions of a function that it makes names like these.
#[test]
fn a_function_goes_by_its_name_where_one_version_of_it_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("versions.c");
    let symbols = [
        "smooth.constprop.0",
        "smooth.constprop.0.cold",
        "smooth.part.1",
        "twice.isra.0",
        "twice.constprop.1",
        "whole",
        "whole.isra.0",
        "smoother",
    ];
    let mut text = String::new();
    for (number, symbol) in symbols.iter().enumerate() {
        text += &format!("void f{number}(void) __asm__(\"{symbol}\");\nvoid f{number}(void) {{}}\n");
    }
    std::fs::write(&source, text + "int main(void) { return 0; }\n").expect("a file");
    let names = Names::of(&compiled(folder.path(), source.to_str().expect("text"), &["-O0"])).expect("names");
    let found = |name: &str| names.function(name).ok();
    assert!(found("smooth").is_some() && found("smooth") == found("smooth.constprop.0"));
    assert!(found("whole").is_some() && found("whole") != found("whole.isra.0"));
    let refused = names.function("twice").expect_err("two versions").to_string();
    assert!(refused.contains("no function `twice`") && refused.contains("twice.isra.0"), "{refused}");
}
