//! `memlode bias alloc`: addresses that allocators give.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Parser;
use memlode_measure::bias::allocators::{self, AllocatorRow};
use memlode_measure::picture::Picture;
use serde_json::json;

use super::{draw, print, print_json};

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
        picture(file, &rows)?;
    }
    if args.json {
        return print_json(&json!({ "sizes": allocators::SIZES, "allocators": rows }));
    }
    print(&allocators::text(&rows))
}

/// A tooth for each allocator and size; as high as the low bits that agree in every pair.
fn picture(file: &Path, rows: &[AllocatorRow]) -> Result<()> {
    let mut points = Vec::new();
    let mut names = Vec::new();
    for row in rows {
        for (size, found) in allocators::SIZES.iter().zip(&row.sizes) {
            let bits = [(found.low21, 21), (found.low20, 20), (found.low12, 12)];
            let agree = bits.into_iter().find(|(pairs, _)| *pairs == found.pairs).map_or(0, |(_, bits)| bits);
            points.push((points.len() as f64, f64::from(agree)));
            let huge = if row.huge { ", huge pages" } else { "" };
            names.push(format!("{} {} KiB{huge}", row.allocator, size >> 10));
        }
    }
    let marked: Vec<(f64, f64)> = points.iter().copied().filter(|(_, bits)| *bits > 0.0).collect();
    let picture = Picture {
        title: "Low address bits that agree in consecutive equal buffers",
        across: "allocator and size",
        up: "bits",
        points: &points,
        marked: &marked,
        names: &names,
    };
    draw(file, &picture)
}
