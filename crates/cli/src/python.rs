//! The Python package, for commands that need DuckDB or pyarrow: this process becomes a Python with
//! it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::memory;

/// Names the Python to take.
const VARIABLE: &str = "MEMLODE_PYTHON";

/// Runs in Python. Modules in the working directory are not imported: they may come from strangers.
const SCRIPT: &str = "\
import sys
sys.path[:] = [folder for folder in sys.path if folder]
try:
    from memlode.command import main
except ImportError as why:
    if not (why.name or '').startswith('memlode'):
        raise
    needs = 'pyspark pandas pyarrow' if sys.argv[1] == 'spark' else 'duckdb pyarrow'
    sys.exit(
        f'memlode: error: `memlode {sys.argv[1]}` does this with memlode\\'s Python package, which {sys.executable} does '
        f'not have: {sys.executable} -m pip install {needs} and the wheel that `make dist` makes, or name a Python '
        'that has them with MEMLODE_PYTHON'
    )
sys.exit(main(sys.argv[1:]))
";

/// Becomes Python, whose exit status is that of the command: `what`, and its arguments in pairs.
///
/// # Errors
/// That there is no Python to run.
pub fn become_python(what: &str, arguments: Vec<OsString>) -> Result<std::process::ExitCode> {
    let python = interpreter();
    let memory = memory::is_wanted().then_some("--memory");
    let why = Command::new(&python).args(["-c", SCRIPT, what]).args(memory).args(arguments).exec();
    bail!(
        "`memlode {what}` does this with memlode's Python package, and {} cannot be run ({why}): name a Python \
         that has the package with {VARIABLE}",
        python.display()
    )
}

/// The requested Python, the one that memlode was installed with, or the one on the path.
fn interpreter() -> PathBuf {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        return named.into();
    }
    let exe = std::env::current_exe().and_then(|exe| exe.canonicalize()).unwrap_or_default();
    let beside = exe.parent().map(|bin| bin.join("python3")).filter(|python| python.exists());
    beside.unwrap_or_else(|| Path::new("python3").to_path_buf())
}

/// An option with its value, which may begin with any character.
pub fn option(name: &str, value: impl Into<OsString>) -> OsString {
    let mut word = OsString::from(format!("--{name}="));
    word.push(value.into());
    word
}
