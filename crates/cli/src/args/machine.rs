//! The machine to simulate.

use clap::{Parser, ValueHint};

/// Which machine to simulate.
#[derive(Debug, Parser)]
pub struct MachineArgs {
    /// Machine to simulate: `host`, a name such as `generic` or `zen4`, or a .toml file
    #[arg(long, short, value_name = "M", default_value = "host", value_hint = ValueHint::FilePath)]
    pub machine: String,
}
