//! The speed at which the collector reads: runs a program and prints words per second, by the clock
//! and by the collector's processor time.
//!
//! ```text
//! cargo run --release -p memlode-collect --example drain -- discard PROGRAM ARGUMENTS…
//! cargo run --release -p memlode-collect --example drain -- DIRECTORY PROGRAM ARGUMENTS…
//! ```
//! `record/test/flood.c` writes words as fast as it can.

use std::process::Command;
use std::time::Instant;

use memlode_collect::{Collector, CommandEnd, Destination, ENVIRONMENT, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [destination, program, rest @ ..] = &arguments[..] else {
        return Err("usage: drain discard|DIRECTORY PROGRAM ARGUMENTS…".into());
    };
    let destination = match destination.as_str() {
        "discard" => Destination::Discard,
        path => Destination::directory(path.as_ref(), true, Default::default()).expect("a trace directory"),
    };
    let collector = Collector::start(Options::new(destination))?;
    let start = Instant::now();
    let status = Command::new(program).args(rest).env(ENVIRONMENT, collector.socket_path()).status()?;
    let seconds = start.elapsed().as_secs_f64();
    let summary = collector.finish(CommandEnd { exit_code: status.code(), signal: None })?;
    let words = summary.stats.words as f64;
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let cpu = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    println!(
        "{:.0} M words in {seconds:.2} s: {:.0} M words/s, {:.0} M words per CPU second of the collector, {:.3} bytes a word",
        words / 1e6,
        words / 1e6 / seconds,
        words / 1e6 / cpu,
        summary.stats.bytes as f64 / words
    );
    for note in summary.notes.iter().chain(&summary.failure) {
        println!("{note}");
    }
    Ok(())
}
