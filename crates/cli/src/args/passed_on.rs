//! The options of this memlode's command line, written again for another memlode.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::{Context, Result};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, ValueHint};

/// Returns the command-line words that give another memlode the same options. Only options that were typed are named.
///
/// The other memlode may start in another directory, so paths are made absolute. Clap knows which options take a path;
/// a [`ValueHint`] marks those that take either a path or a name.
pub fn words(options: &Command, given: &ArgMatches) -> Result<Vec<OsString>> {
    let mut words = Vec::new();
    for option in options.get_arguments().filter(|option| was_given(option, given)) {
        let Some(name) = option.get_long().map(|name| OsString::from(format!("--{name}"))) else { continue };
        if !option.get_action().takes_values() {
            words.push(name);
            continue;
        }
        for value in given.get_raw(option.get_id().as_str()).into_iter().flatten() {
            words.extend([name.clone(), absolute(option, value)?]);
        }
    }
    Ok(words)
}

/// Returns whether an option was typed.
pub fn was_given(option: &Arg, given: &ArgMatches) -> bool {
    let id = option.get_id().as_str();
    given.try_contains_id(id).unwrap_or(false) && given.value_source(id) == Some(ValueSource::CommandLine)
}

/// The value, with the path of a file made absolute.
fn absolute(option: &Arg, value: &OsStr) -> Result<OsString> {
    let path = Path::new(value);
    let is_file = match option.get_value_hint() {
        ValueHint::AnyPath => value != "-",
        // Machines have names, too, and files of machines end so.
        ValueHint::FilePath => {
            path.is_file() && path.extension().is_some_and(|extension| extension == "toml")
        }
        ValueHint::Other => path.is_file(),
        _ => false,
    };
    if !is_file {
        return Ok(value.to_owned());
    }
    let absolute = std::path::absolute(path).with_context(|| format!("{}: no such place", path.display()))?;
    Ok(absolute.into())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use crate::commands::run;

    /// Options that were typed are passed on, and no others.
    #[test]
    fn typed_options_are_passed_on() {
        let here = std::env::current_dir().unwrap();
        let here = here.to_str().unwrap();
        for (line, expected) in [
            ("", String::new()),
            ("--burst 1% --force", "--force --burst 1%".into()),
            ("-o t --report-to -", format!("--output {here}/t --report-to -")),
            ("--report-to a/b --json -m zen4", format!("--machine zen4 --json --report-to {here}/a/b")),
            (
                "--sim --pages 4KiB,2MiB@heap --cores 0,1",
                "--sim --pages 4KiB --pages 2MiB@heap --cores 0 --cores 1".into(),
            ),
            ("--sim --placement interleave", "--sim --placement interleave".into()),
            ("--sim --placement Cargo.toml", format!("--sim --placement {here}/Cargo.toml")),
            ("--machine Cargo.toml", format!("--machine {here}/Cargo.toml")),
            ("--region a --region b --analyse reuse", "--region a --region b --analyse reuse".into()),
        ] {
            let arguments = ["run"].into_iter().chain(line.split_whitespace());
            let given = run::Options::command().try_get_matches_from(arguments).unwrap();
            let words = super::words(&run::Options::command(), &given).unwrap();
            let words: Vec<&str> = words.iter().map(|word| word.to_str().unwrap()).collect();
            assert_eq!(words.join(" "), expected, "{line}");
            // Another memlode understands them.
            run::Options::try_parse_from(["run"].into_iter().chain(words.iter().copied())).unwrap();
        }
    }

    /// An option without a long name could not be passed on.
    #[test]
    fn every_option_has_a_long_name() {
        for option in run::Options::command().get_arguments() {
            assert!(option.get_long().is_some(), "{}", option.get_id());
        }
    }

    /// A beginner's page fits a screen: `-h` lists at most a dozen options, and `--help` lists the others in groups.
    #[test]
    fn short_help_lists_a_dozen_options() {
        let options = run::Options::command();
        let shown = |option: &&clap::Arg| !option.is_hide_set() && !option.is_hide_short_help_set();
        assert!(options.get_arguments().filter(shown).count() <= 12);
        let alone = options.get_arguments().find(|option| {
            option.is_hide_short_help_set() && !option.is_hide_set() && option.get_help_heading().is_none()
        });
        assert!(alone.is_none(), "{alone:?} stands in no group");
    }
}
