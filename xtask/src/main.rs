//! `cargo xtask`: code generation and checks of the tree.
//!
//! `gen` expands `format/trace.toml` into the C, Rust and Python views of the trace format, and the files of
//! analyses and of remedies into their registries and pages, and puts measured figures into pages. `check` proves that these are fresh, that the dependency law of
//! ARCHITECTURE.md holds, that doc comments begin with sentences, and that pages fit 100 columns. `wrap` makes them fit.

mod analyses;
mod comments;
mod emit_c;
mod emit_python;
mod emit_rust;
mod exported;
mod features;
mod figures;
mod generate;
mod json;
mod law;
mod prose;
mod remedies;
mod rooms;
mod schema;
mod wordless;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Code generation and checks of the tree")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Expand format/trace.toml into format/generated/, the analyses into their registry and docs/analyses/, and
    /// bench/results/ into the pages that quote figures
    Gen {
        /// Write nothing; fail if a generated file is stale
        #[arg(long)]
        check: bool,
    },
    /// Check generated files, the dependency law, beginnings of doc comments, and the columns, links and words of pages
    Check,
    /// Wrap the prose of Markdown pages to 100 columns
    Wrap,
}

fn main() -> ExitCode {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let problems = match Arguments::parse().command {
        Command::Gen { check: false } => generate::write(&root).map(|()| Vec::new()),
        Command::Gen { check: true } => generate::stale(&root),
        Command::Check => law::check(&root).and_then(|mut problems| {
            problems.extend(features::built_twice(&root)?);
            problems.extend(rooms::check(&root)?);
            problems.extend(exported::check(&root)?);
            problems.extend(wordless::check(&root)?);
            problems.extend(generate::stale(&root)?);
            problems.extend(figures::unsourced(&root)?);
            problems.extend(comments::fragments(&root)?);
            problems.extend(prose::too_long(&root)?);
            problems.extend(prose::dead_links(&root)?);
            problems.extend(prose::banned_words(&root)?);
            Ok(problems)
        }),
        Command::Wrap => prose::wrap_all(&root).map(|()| Vec::new()),
    };
    match problems {
        Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
        Ok(problems) => {
            for problem in &problems {
                eprintln!("{problem}");
            }
            eprintln!("{} problem(s)", problems.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
