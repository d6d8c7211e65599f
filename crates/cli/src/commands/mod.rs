//! One file per subcommand: its arguments and its work.

pub mod advise;
mod alias;
mod annotate;
#[cfg(feature = "measure")]
mod bench;
#[cfg(feature = "measure")]
mod bias;
mod budget;
mod cargo;
mod check;
mod completions;
mod ctl;
mod diff;
mod doctor;
pub mod dump;
mod export;
mod groups;
mod guide;
mod html;
#[cfg(feature = "measure")]
mod import;
#[cfg(feature = "measure")]
mod machine;
mod part;
pub mod place_blocks;
mod replay;
pub mod report;
mod results;
pub mod run;
#[cfg(feature = "measure")]
mod sample;
mod serve;
mod sim;
mod spark;
mod sql;
#[cfg(feature = "measure")]
mod stat;
mod timeline;
#[cfg(feature = "measure")]
mod validate;
mod whatif;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::args::dashes;
use crate::door::Form;
use crate::print::print;
use crate::status::WRONG_USAGE;
use crate::term;

/// Which data does a program wait for? memlode names the field and the line.
#[derive(Debug, Parser)]
#[command(name = "memlode", version, max_term_width = 100, after_help = AFTER_HELP)]
struct Cli {
    /// Tell memlode's peak memory at the end, on standard error
    #[arg(long, global = true, hide_short_help = true)]
    memory: bool,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
In ten minutes:
  memlode cc -O2 prog.c -o prog     (or CC=memlode-cc ./configure && make)
  memlode run -- ./prog input

Exit status: 0 success, 1 error, 2 wrong usage, 3 problems found (check, doctor, budget check).
`run` and `record` exit as the program does, 128 + n after signal n; 125 when memlode itself failed, \
126 when the program cannot be executed, 127 when it is not found. `cc`, `c++` and `fc` exit as the compiler does, \
`cargo` as cargo does.";

const COMPILER_HELP: &str = "\
Usage: memlode cc [--print] [--allocators FILE] [--filter FILE] [--values] [--fidelity F] ARGUMENTS OF CLANG…

Options of memlode's own come first:
  --print             show the real command, and do not run it (also --memlode-print)
  --allocators FILE   further allocation functions (also the variable MEMLODE_ALLOCATORS)
  --filter FILE       what not to record, by function, file, type and kind (also MEMLODE_FILTER; docs/compiling.md)
  --values            record what is loaded and stored, too, which `memlode dump` shows (also MEMLODE_VALUES=1; rules of
                      kind=values in the filter choose some)
  --fidelity F        record the accesses of the 'optimised' program (default) or those of its 'source'
                      (also MEMLODE_FIDELITY)

Everything else goes to clang as it is. memlode adds:
  when compiling  -fpass-plugin=…, and -g unless a debug level is given (-g0 is honoured)
  when linking    the run-time library with its rpath, and --build-id
  with -flto      the plug-in at the link instead, through lld
Nothing is added for -ffreestanding and assembler files; for -E, -M and -fsyntax-only, the directory of memlode.h.

MEMLODE_CCACHE=1 (or the path of one) has memlode call ccache; ccache in front of memlode is refused.

The compiler is clang-22 or else clang-19; MEMLODE_CC and MEMLODE_CXX name others of these versions.
For Fortran (`memlode fc`) it is flang-22, or what MEMLODE_FC names.
Build systems that want one word can use memlode-cc, memlode-c++ and memlode-fc, or memlode-clang and memlode-clang++.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile C: clang, with memlode's recording added
    #[command(disable_help_flag = true, override_help = COMPILER_HELP)]
    Cc {
        /// clang's arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Compile C++: clang++, with memlode's recording added
    #[command(name = "c++", disable_help_flag = true, override_help = COMPILER_HELP)]
    Cxx {
        /// clang++'s arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Compile Fortran: flang, with memlode's recording added
    #[command(disable_help_flag = true, override_help = COMPILER_HELP)]
    Fc {
        /// flang's arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    Cargo(cargo::Args),
    Run(run::Args),
    Record(run::RecordArgs),
    Report(report::Args),
    Annotate(annotate::Args),
    Html(html::Args),
    Sim(sim::Args),
    Replay(replay::Args),
    Export(export::Args),
    Sql(sql::Args),
    Spark(spark::Args),
    Timeline(timeline::Args),
    Whatif(whatif::Args),
    Advise(advise::Args),
    Budget(budget::Args),
    Diff(diff::Args),
    Alias(alias::Args),
    Results(results::Args),
    #[cfg(feature = "measure")]
    #[command(flatten)]
    Measuring(Measuring),
    Dump(dump::Args),
    Check(check::Args),
    Serve(serve::Args),
    Ctl(ctl::Args),
    Doctor(doctor::Args),
    Guide(guide::Args),
    Completions(completions::Args),
    Man(completions::ManArgs),
    PlaceBlocks(place_blocks::Args),
    Part(part::Args),
}

/// Commands that time programs.
#[cfg(feature = "measure")]
#[derive(Debug, Subcommand)]
enum Measuring {
    Bench(bench::Args),
    Stat(stat::Args),
    Bias(bias::Args),
    Validate(validate::Args),
    Sample(sample::Args),
    Import(import::Args),
    Machine(machine::Args),
}

/// Everything but the compilers, which `main` handles before clap sees their arguments.
pub fn run(args: Vec<OsString>) -> Result<ExitCode> {
    let memlode = groups::grouped(Cli::command());
    if let Some(slip) = dashes::slip(&args, &memlode) {
        term::error(&anyhow::anyhow!(slip));
        return Ok(ExitCode::from(WRONG_USAGE));
    }
    let parsed = memlode.try_get_matches_from(args).and_then(|given| {
        let cli = Cli::from_arg_matches(&given)?;
        Ok((cli, given))
    });
    let (Cli { command, memory }, given) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return usage(&error),
    };
    if memory {
        crate::memory::want();
    }
    let given = given.subcommand().map(|(_, given)| given);
    match command {
        Command::Cc { arguments } => crate::driver::run(crate::driver::toolchain::Language::C, arguments),
        Command::Cxx { arguments } => crate::driver::run(crate::driver::toolchain::Language::Cxx, arguments),
        Command::Fc { arguments } => {
            crate::driver::run(crate::driver::toolchain::Language::Fortran, arguments)
        }
        Command::Cargo(args) => cargo::run(args, given),
        Command::Run(args) => run::run(args),
        Command::Record(args) => run::record(args),
        Command::Report(args) => report::run(args, given),
        Command::Annotate(args) => annotate::run(args, given),
        Command::Html(args) => html::run(args),
        Command::Sim(args) => sim::run(args, given),
        Command::Replay(args) => replay::run(args, given),
        Command::Export(args) => export::run(args),
        Command::Sql(args) => sql::run(args),
        Command::Spark(args) => spark::run(args),
        Command::Timeline(args) => timeline::run(args, given),
        Command::Advise(args) => advise::run(args, given),
        Command::Budget(args) => budget::run(args),
        Command::Whatif(args) => whatif::run(args, given),
        Command::Diff(args) => diff::run(args, given),
        Command::Alias(args) => alias::run(args, given),
        Command::Results(args) => results::run(args),
        #[cfg(feature = "measure")]
        Command::Measuring(command) => match command {
            Measuring::Bench(args) => bench::run(args),
            Measuring::Stat(args) => stat::run(args),
            Measuring::Bias(args) => bias::run(args),
            Measuring::Validate(args) => validate::run(args, given),
            Measuring::Sample(args) => sample::run(args),
            Measuring::Import(args) => import::run(args),
            Measuring::Machine(args) => machine::run(args),
        },
        Command::Dump(args) => dump::run(args),
        Command::Check(args) => check::run(args),
        Command::Serve(args) => serve::run(args),
        Command::Ctl(args) => ctl::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Guide(args) => guide::run(args),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Man(args) => completions::man(args, Cli::command()),
        Command::PlaceBlocks(args) => place_blocks::run(args),
        Command::Part(args) => part::run(args),
    }
}

/// Reports errors in the arguments, which may contain names from strangers; or prints help.
fn usage(error: &clap::Error) -> Result<ExitCode> {
    let to_stderr = error.use_stderr();
    let colours =
        if to_stderr { term::colours(&std::io::stderr()) } else { term::colours(&std::io::stdout()) };
    let text = error.render();
    let text = if colours { text.ansi().to_string() } else { text.to_string() };
    match to_stderr {
        true => term::block(&text, Form::Text { colours })?,
        false => print(&text)?,
    }
    Ok(ExitCode::from(error.exit_code() as u8))
}
