//! `memlode cargo`: cargo, with crates built so that they are recorded, and programs run by `memlode run`.
//!
//! ```text
//! cargo --config target.HOST.runner=["memlode","run",…,"--"] SUBCOMMAND ARGS…
//!   CARGO_BUILD_TARGET=HOST                       to recognise build scripts
//!   CARGO_TARGET_DIR=target/memlode-cargo         so that the other builds stay as they are
//!   RUSTC_WRAPPER=target/memlode-cargo/memlode-rustc
//! ```
//! None of these replaces flags that the user has set, in the environment or in cargo's configuration. Cargo replaces
//! this process, so exit status, signals and output are its own.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, CommandFactory, Parser};

use super::run::Options;
use crate::args::passed_on;
use crate::driver::toolchain::shell_quote;
use crate::driver::{self, ALLOCATORS, FILTER, VALUES, rustc};
use crate::install::Install;
use crate::term;

/// Build, run, test or bench Rust: cargo, with memlode's recording added
///
/// Options of memlode's own come before cargo's subcommand. `run`, `test` and `bench` record what they start, as
/// `memlode run` does; `build` leaves programs for it in target/memlode-cargo.
#[derive(Debug, Parser)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Options of the program's run, which are given on as they are.
    #[command(flatten)]
    _options: Options,
    /// Show the real command, and do not run it
    #[arg(long)]
    print: bool,
    /// Further allocation functions (also the variable MEMLODE_ALLOCATORS)
    #[arg(long, value_name = "FILE")]
    allocators: Option<PathBuf>,
    /// Filter of what not to record (also the variable MEMLODE_FILTER)
    #[arg(long, value_name = "FILE")]
    filter: Option<PathBuf>,
    /// Record what is loaded and stored, too (also the variable MEMLODE_VALUES=1)
    #[arg(long)]
    values: bool,
    /// Cargo's subcommand and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    cargo: Vec<OsString>,
}

const AFTER_HELP: &str = "\
Examples:
  memlode cargo run --release -- input.txt
  memlode cargo --machine zen4 bench
  memlode cargo build --release && memlode run target/memlode-cargo/x86_64-unknown-linux-gnu/release/prog

Needs a rustc on LLVM 22 (1.95, say), clang-22 and lld-22. The standard library is not recorded except for what is \
inlined from it. See docs/rust.md.";

/// The subdirectory of cargo's target directory that is ours. Not `memlode`: that is where memlode builds itself.
const DIRECTORY: &str = "memlode-cargo";

/// `given` are the matches from which `args` was made.
pub fn run(args: Args, given: Option<&ArgMatches>) -> Result<ExitCode> {
    let install = Install::find()?;
    let request = Request::read(&args.cargo);
    let host = host(&request)?;
    if let Some(other) = request.target.filter(|target| *target != host) {
        bail!("--target {other}: memlode records programs of this machine only, which is {host}");
    }
    if std::env::var_os(driver::FIDELITY).is_some_and(|fidelity| fidelity == "source") {
        bail!(
            "{} is 'source': rustc loads no plug-ins, so Rust can be recorded as optimised only",
            driver::FIDELITY
        );
    }
    rustc::require_linker()?;
    let symbols = rustc::allocator_crate(&sysroot(&request)?, &host)?;
    let additions = rustc::additions(&install, true, &symbols)?;
    let files = [("--allocators", ALLOCATORS, &args.allocators), ("--filter", FILTER, &args.filter)].map(
        |(option, variable, file)| {
            file.as_deref().map(|file| Ok((variable, driver::existing(option, file)?.into())))
        },
    );
    let files = files.into_iter().flatten().collect::<Result<Vec<(&str, OsString)>>>()?;

    let directory = match &request.target_dir {
        Some(directory) => std::path::absolute(directory)?,
        None => target_directory(&request)?.join(DIRECTORY),
    };
    let wrapper = directory.join(rustc::NAME);
    let mut variables: Vec<(&str, OsString)> = vec![
        ("CARGO_BUILD_TARGET", host.clone().into()),
        ("CARGO_TARGET_DIR", directory.clone().into()),
        ("RUSTC_WRAPPER", wrapper.clone().into()),
        (rustc::ALLOCATOR_CRATE, symbols.into()),
    ];
    if let Some(inner) =
        std::env::var_os("RUSTC_WRAPPER").filter(|inner| !inner.is_empty() && *inner != *wrapper)
    {
        variables.push((rustc::INNER_WRAPPER, inner));
    }
    variables.extend(files);
    variables.extend(args.values.then(|| (VALUES, "1".into())));
    let exe = std::env::current_exe().context("the path of the memlode executable is unknown")?;
    let options = given.map(|given| passed_on::words(&Options::command(), given)).transpose()?;
    let words = line(&request, &host, &exe, options.unwrap_or_default())?;

    if args.print {
        let set = variables.iter().map(|(name, value)| format!("{name}={}", shell_quote(value)));
        let words: Vec<String> = set.chain(words.iter().map(shell_quote)).collect();
        let added: Vec<String> = additions.iter().map(shell_quote).collect();
        crate::print::print(&format!("{}\n# {} adds: {}\n", words.join(" "), rustc::NAME, added.join(" ")))?;
        return Ok(ExitCode::SUCCESS);
    }
    link(&exe, &wrapper)?;
    if matches!(request.subcommand, Some("build" | "b")) {
        term::line(&format!("building in {}", directory.join(host).display()));
    }
    let failure = Command::new(&words[0]).args(&words[1..]).envs(variables).exec();
    Err(failure).with_context(|| format!("cannot run {}", words[0].display()))
}

/// The part of cargo's command line that has to be known.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request<'a> {
    /// `+nightly`.
    toolchain: Option<&'a OsStr>,
    /// Everything else.
    words: &'a [OsString],
    subcommand: Option<&'a str>,
    target: Option<&'a str>,
    target_dir: Option<&'a str>,
    manifest_path: Option<&'a str>,
    /// `-C`: where cargo goes first.
    directory: Option<&'a str>,
}

impl<'a> Request<'a> {
    fn read(words: &'a [OsString]) -> Request<'a> {
        let is_toolchain = |word: &OsString| word.as_encoded_bytes().starts_with(b"+");
        let (toolchain, words) = match words.split_first() {
            Some((first, rest)) if is_toolchain(first) => (Some(first.as_os_str()), rest),
            _ => (None, words),
        };
        let mut request = Request { toolchain, words, ..Request::default() };
        let mut rest = words.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
        while let Some(word) = rest.next() {
            let (option, joined) = match word.split_once('=') {
                Some((option, value)) if word.starts_with("--") => (option, Some(value)),
                _ => (word, None),
            };
            match option {
                "--target" => request.target = joined.or_else(|| rest.next()),
                "--target-dir" => request.target_dir = joined.or_else(|| rest.next()),
                "--manifest-path" => request.manifest_path = joined.or_else(|| rest.next()),
                "-C" => request.directory = rest.next(),
                // Options of cargo's own, with a value, that may stand before the subcommand.
                "--config" | "--color" | "-Z" | "--explain" if joined.is_none() => _ = rest.next(),
                _ if !word.starts_with('-') && request.subcommand.is_none() => {
                    request.subcommand = Some(word)
                }
                _ => {}
            }
        }
        request
    }

    /// `cargo`, or another tool of the toolchain, with the words before its arguments.
    fn tool(&self, name: impl Into<OsString>) -> Vec<OsString> {
        std::iter::once(name.into()).chain(self.toolchain.map(OsStr::to_os_string)).collect()
    }
}

/// Runs the compiler that cargo will use. Returns its name, its output, and its errors.
fn ask_rustc(request: &Request, question: &[&str]) -> Result<(String, String, String)> {
    // Cargo too goes by this variable.
    let compiler = std::env::var_os("RUSTC").filter(|compiler| !compiler.is_empty());
    let words = request.tool(compiler.unwrap_or("rustc".into()));
    let name = words[0].display().to_string();
    let output = Command::new(&words[0])
        .args(&words[1..])
        .args(question)
        .output()
        .with_context(|| format!("cannot run {name}: is Rust installed?"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((name, text(&output.stdout), text(&output.stderr)))
}

/// Returns where the compiler has its standard library.
fn sysroot(request: &Request) -> Result<PathBuf> {
    let (name, printed, told) = ask_rustc(request, &["--print", "sysroot"])?;
    match printed.trim() {
        "" => bail!("{name} --print sysroot does not say where its library is: {}", told.trim()),
        sysroot => Ok(PathBuf::from(sysroot)),
    }
}

/// The triple of this machine, if its rustc is one that memlode can work with.
fn host(request: &Request) -> Result<String> {
    let (name, text, told) = ask_rustc(request, &["-vV"])?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let (Some(host), Some(version)) = (field("host:"), field("LLVM version:")) else {
        bail!("{name} -vV does not say its host and LLVM version: {}", told.trim());
    };
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major != Some(rustc::LLVM) {
        bail!(
            "rustc {} is built on LLVM {version}, and memlode's plug-in for Rust needs LLVM {}: choose another toolchain \
             (`rustup toolchain install 1.95`, `memlode cargo +1.95 …`)",
            field("release:").unwrap_or("of unknown release"),
            rustc::LLVM
        );
    }
    Ok(host.to_string())
}

/// Returns where cargo builds, by asking cargo: it may be set in many places.
fn target_directory(request: &Request) -> Result<PathBuf> {
    let words = request.tool("cargo");
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args(["metadata", "--no-deps", "--format-version=1"]);
    if let Some(manifest) = request.manifest_path {
        command.args(["--manifest-path", manifest]);
    }
    if let Some(directory) = request.directory {
        command.current_dir(directory);
    }
    let output = command.output().with_context(|| format!("cannot run {}", words[0].display()))?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        bail!("cargo cannot tell where it builds: {}", told.trim().trim_start_matches("error: "));
    }
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("`cargo metadata` printed no JSON")?;
    metadata["target_directory"]
        .as_str()
        .map(PathBuf::from)
        .context("`cargo metadata` names no target_directory")
}

/// Cargo's command line.
fn line(request: &Request, host: &str, exe: &Path, options: Vec<OsString>) -> Result<Vec<OsString>> {
    let mut runner: Vec<OsString> = vec![exe.into(), "run".into()];
    runner.extend(options);
    if !matches!(request.subcommand, Some("run" | "r")) {
        // Of many test programs, some run nothing that is recorded.
        runner.push("--allow-empty".into());
    }
    runner.push("--".into());
    let runner: Option<Vec<&str>> = runner.iter().map(|word| word.to_str()).collect();
    let runner = runner.context("cargo's configuration is UTF-8, and one of these paths is not")?;
    // A JSON array of strings is a TOML array too.
    let runner = format!("target.{host}.runner={}", serde_json::to_string(&runner)?);
    let ours = ["--config".into(), runner.into()];
    Ok(request.tool("cargo").into_iter().chain(ours).chain(request.words.iter().cloned()).collect())
}

/// Makes `wrapper` a link to this executable. Several of us may do so at once.
fn link(exe: &Path, wrapper: &Path) -> Result<()> {
    if fs::read_link(wrapper).is_ok_and(|to| to == exe) {
        return Ok(());
    }
    let directory = wrapper.parent().unwrap_or(Path::new("/"));
    let fresh = directory.join(format!(".{}-{}", rustc::NAME, std::process::id()));
    fs::create_dir_all(directory)
        .and_then(|()| symlink(exe, &fresh))
        .and_then(|()| fs::rename(&fresh, wrapper))
        .with_context(|| format!("cannot make the link {}", wrapper.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn what_is_cargos_and_what_is_the_programs() {
        for (line, expected) in [
            ("build", Request { subcommand: Some("build"), ..Request::default() }),
            (
                "+nightly --config a=1 -Z x run --target-dir=t -- --target y build",
                Request {
                    toolchain: Some(OsStr::new("+nightly")),
                    subcommand: Some("run"),
                    target_dir: Some("t"),
                    ..Request::default()
                },
            ),
            (
                "--color never -C sub test --manifest-path m/Cargo.toml --target wasm32-unknown-unknown name",
                Request {
                    subcommand: Some("test"),
                    target: Some("wasm32-unknown-unknown"),
                    manifest_path: Some("m/Cargo.toml"),
                    directory: Some("sub"),
                    ..Request::default()
                },
            ),
            ("--version", Request::default()),
            ("run --target", Request { subcommand: Some("run"), ..Request::default() }),
        ] {
            let words = words(line);
            let rest = &words[usize::from(expected.toolchain.is_some())..];
            assert_eq!(Request::read(&words), Request { words: rest, ..expected }, "{line}");
        }
    }
}
