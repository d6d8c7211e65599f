//! `memlode spark submit`: a script in Spark, whose executors get memlode's Python package.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::python::become_python;

/// Run a script in Spark, with memlode's package on its executors
#[derive(Debug, Parser)]
#[command(after_help = "docs/spark.md says what such a script looks like.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Call spark-submit, of SPARK_HOME, of Python's pyspark, or on the path; the package goes with it
    #[command(after_help = "Exit status: that of spark-submit; 1 if there is none, 2 wrong usage.")]
    Submit {
        /// Show the command line of spark-submit, and do not run it
        #[arg(long)]
        print: bool,
        /// Options of spark-submit, the script, and its arguments
        #[arg(
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "SPARK-SUBMIT'S OPTIONS… SCRIPT ARGUMENTS"
        )]
        words: Vec<OsString>,
    },
}

pub fn run(args: Args) -> Result<ExitCode> {
    let What::Submit { print, words } = args.what;
    let ours = print.then(|| "--print".into()).into_iter().chain(["--".into()]);
    become_python("spark", ours.chain(words).collect())
}
