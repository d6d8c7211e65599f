//! Long options that were written with one dash.

use std::ffi::OsString;

use clap::Command;

/// Suggests the spelling of an option that has one dash where it needs two: `-machine` would be
/// read as `-m achine`. `args` are memlode's, from its own name on. Words that a program may get
/// are not looked at.
pub fn slip(args: &[OsString], memlode: &Command) -> Option<String> {
    let mut words = args.iter().skip(1).map_while(|word| word.to_str());
    let command = memlode.find_subcommand(words.next()?)?;
    let mut own: Vec<&str> = words.collect();
    let end = own.iter().position(|word| *word == "--");
    if end.is_none() && command.get_arguments().any(|argument| argument.is_trailing_var_arg_set()) {
        return None;
    }
    own.truncate(end.unwrap_or(own.len()));
    let is_long = |name: &str| command.get_arguments().any(|argument| argument.get_long() == Some(name));
    let slip = own.iter().find(|word| {
        let name = word.strip_prefix('-').filter(|name| name.len() > 1);
        name.is_some_and(|name| is_long(name.split('=').next().unwrap_or(name)))
    })?;
    Some(format!("`{slip}` has one dash: the option is `-{slip}` (`memlode {} --help`)", command.get_name()))
}
