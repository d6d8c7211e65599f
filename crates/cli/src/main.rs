//! The `memlode` command: which data does a program wait for?
//!
//! One file per subcommand in `commands/`; the drop-in compilers are in `driver/`.

// What only the commands that time programs use is left alone where these are left out.
#![cfg_attr(not(feature = "measure"), allow(dead_code, unused_imports, unused_variables))]

mod accesses;
mod advised;
mod analyse;
mod args;
mod baseline;
mod call_graph;
mod child;
mod code;
mod commands;
mod control;
mod destination;
mod door;
mod driver;
mod exported;
mod handles;
mod host;
mod install;
mod interrupt;
#[cfg(feature = "measure")]
mod itself;
mod kept;
mod live;
mod memory;
mod next;
mod page;
mod patch;
mod place;
mod preload;
mod print;
mod processes;
mod python;
mod sampled;
mod sampled_lines;
mod show;
mod status;
mod stop;
mod term;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use driver::toolchain::Language;

fn main() -> ExitCode {
    interrupt::survive_limits();
    let status = match run(std::env::args_os().collect()) {
        Ok(code) => code,
        // `memlode dump … | head`: the reader has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            term::error(&error);
            ExitCode::from(status::FAILED)
        }
    };
    memory::tell();
    status
}

fn run(mut args: Vec<OsString>) -> anyhow::Result<ExitCode> {
    // Build systems want a compiler to be one path, and some makefiles look for `clang` in it: these are links to memlode.
    let called_as = args.first().and_then(|name| Path::new(name).file_name()).and_then(OsStr::to_str);
    match called_as {
        Some("memlode-cc" | "memlode-clang") => return driver::run(Language::C, args.split_off(1)),
        Some("memlode-c++" | "memlode-clang++") => return driver::run(Language::Cxx, args.split_off(1)),
        Some("memlode-fc") => return driver::run(Language::Fortran, args.split_off(1)),
        // And cargo wants a compiler's wrapper to be one.
        Some(driver::rustc::NAME) => return driver::rustc::run(args.split_off(1)),
        _ => {}
    }
    // Before clap sees them: every argument behind these is the compiler's.
    match args.get(1).and_then(|arg| arg.to_str()) {
        Some("cc") => driver::run(Language::C, args.split_off(2)),
        Some("c++") => driver::run(Language::Cxx, args.split_off(2)),
        Some("fc") => driver::run(Language::Fortran, args.split_off(2)),
        _ => commands::run(args),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}
