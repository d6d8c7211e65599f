//! The `memlode` command.
fn main() {}
