//! `memlode bias alloc`: addresses that allocators give.

use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Parser;
use memlode_measure::bias::allocators;
use memlode_report::render::measured::allocators as words;
use serde_json::json;

use super::draw;

use crate::print::{print, print_json};

/// Show which low address bits of equal buffers agree, by allocator
#[derive(Debug, Parser)]
pub struct Alloc {
    /// Further allocators: libraries to preload
    #[arg(long, value_name = "LIBRARY")]
    library: Vec<PathBuf>,
    /// Write the bits that agree as a picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print addresses of this process
    #[arg(long, hide = true)]
    addresses: bool,
}

pub fn run(args: &Alloc) -> Result<()> {
    if args.addresses {
        let line = |line: Vec<usize>| line.iter().map(usize::to_string).collect::<Vec<_>>().join(" ") + "\n";
        return print(&allocators::addresses().into_iter().map(line).collect::<String>());
    }
    let own = std::env::current_exe().context("the path of the memlode executable is unknown")?;
    let program = [own.as_os_str(), OsStr::new("bias"), OsStr::new("alloc"), OsStr::new("--addresses")];
    let mut known = allocators::installed();
    for library in &args.library {
        if !library.is_file() {
            bail!("--library {}: there is no such file", library.display());
        }
        let name = library.file_name().unwrap_or(library.as_os_str()).to_string_lossy().into_owned();
        known.push(allocators::AllocatorLibrary { name, library: Some(library.clone()), huge: None });
    }
    let mut rows = Vec::new();
    for allocator in &known {
        for huge in [false, true] {
            if huge && allocator.huge.is_none() {
                continue;
            }
            rows.push(allocators::ask(allocator, huge, &program)?);
        }
    }
    if let Some(file) = &args.svg {
        draw(file, &words::picture(&rows))?;
    }
    if args.json {
        return print_json(&json!({ "sizes": allocators::SIZES, "allocators": rows }));
    }
    print(&words::text(&rows))
}
