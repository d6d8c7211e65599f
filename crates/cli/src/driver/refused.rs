//! Options that clang refuses: most were written for gcc.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use super::toolchain::{Compiler, Language};
use crate::term;

/// Beginnings of options that consist of one word, and need no other options.
const ALONE: [&[u8]; 4] = [b"-f", b"-m", b"-W", b"-std="];

/// Options of this kind that name files or other additions of memlode.
const NOT_ALONE: [&[u8]; 6] = [b"-fpass-plugin=", b"-fplugin", b"-Wl,", b"-Wp,", b"-Wa,", b"-fmodule"];

/// Refusals of the driver or of the compiler, with the place of the option in them.
const REFUSALS: [&str; 5] = [
    "unknown argument: '",
    "unknown argument '",
    "unknown warning option '",
    "unsupported option '",
    "optimization flag '",
];

/// After a failure: reports which options were to blame, if any were. They are tried on an empty
/// file.
pub fn explain(language: Language, compiler: &Compiler, line: &[OsString]) {
    let tried = line.iter().filter(|word| {
        let begins_with = |beginning: &&[u8]| word.as_bytes().starts_with(beginning);
        ALONE.iter().any(begins_with) && !NOT_ALONE.iter().any(begins_with)
    });
    let kind = match language {
        Language::C => "c",
        Language::Cxx => "c++",
        Language::Fortran => return,
    };
    // Some of them ask for files: those go with a folder of ours.
    let Ok(folder) = tempfile::tempdir() else { return };
    let Ok(program) = std::path::absolute(&compiler.path) else { return };
    let mut command = Command::new(program);
    command.args(tried).args(["-fsyntax-only", "-fno-color-diagnostics", "-x", kind, "/dev/null"]);
    command.current_dir(folder.path()).env("LC_ALL", "C").stdin(Stdio::null());
    #[cfg(feature = "measure")]
    memlode_measure::link::confine(&mut command, folder.path());
    let Ok(output) = command.output() else { return };
    let refused = refused(&String::from_utf8_lossy(&output.stderr));
    if refused.is_empty() {
        return;
    }
    let warnings = match refused.iter().any(|option| option.starts_with("-W")) {
        true => ", or add -Wno-unknown-warning-option",
        false => "",
    };
    let (are, them) = if refused.len() == 1 { ("is no option", "it") } else { ("are no options", "them") };
    term::note(&format!(
        "{} {are} of clang {}, which memlode {} is: leave {them} out of this build's flags{warnings}",
        refused.join(", "),
        compiler.version,
        language.command(),
    ));
}

/// The options that errors name.
fn refused(errors: &str) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    for line in errors.lines().filter(|line| line.contains("error: ")) {
        let named = REFUSALS.iter().find_map(|refusal| line.split_once(refusal)?.1.split('\'').next());
        if let Some(option) = named.filter(|option| !options.iter().any(|known| known == option)) {
            options.push(option.to_owned());
        }
    }
    options
}
