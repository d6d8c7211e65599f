//! Standard output, which may be gone.

use std::io::{BufWriter, Write};

use anyhow::Result;
use serde::Serialize;

use crate::door::{Door, Form};
use crate::term;

/// To standard output, as an error and not a panic when its reader is gone.
pub fn print(text: &str) -> Result<()> {
    let stdout = std::io::stdout();
    let form = Form::Text { colours: term::colours(&stdout) };
    let mut stdout = Door::new(stdout.lock(), form);
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Prints JSON to standard output.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    let mut stdout = Door::new(BufWriter::new(std::io::stdout().lock()), Form::Json);
    serde_json::to_writer_pretty(&mut stdout, value).map_err(std::io::Error::from)?;
    Ok(writeln!(stdout).and_then(|()| stdout.flush())?)
}
