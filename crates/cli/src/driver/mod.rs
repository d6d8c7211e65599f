//! The drop-in compilers: the user's command line, and what memlode adds to it.
//!
//! ```text
//! memlode cc [--print] [--allocators FILE] [--filter FILE] [--values] [--fidelity F] [--static-runtime] ARGS…
//!            └── ours, only here ───────────────────────────────────────────────────────────────────────┘ └── clang's
//!
//! compiles?  -fpass-plugin=…/memlode-pass-22.so   (with -flto: at the link, through lld, unless the program is
//!                                                  recorded as written)
//!            -g                                   (when no debug level was chosen)
//!            -frecord-command-line                (C and C++: for patches)
//!            -fstandalone-debug                   (C++; the user's -flimit-debug-info comes later and wins)
//! links?     libmemlode_stdcxx.a                          (C++: functions of libstdc++'s that are recorded)
//!            -L… -lmemlode_record, its rpath, --build-id   (with --static-runtime: all of its archive, in programs)
//! ```
//! The compiler's exit status, output and input are its own; signals to us go to it.

pub mod argv;
mod ccache;
mod depinfo;
mod link;
mod refused;
#[cfg(feature = "measure")]
mod repeat;
pub mod rustc;
pub mod toolchain;

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::child;
use crate::install::Install;
use argv::{Request, Stage};
use link::Link;
use toolchain::{Compiler, Language, shell_quote};

/// The variable through which the plug-in learns of further allocation functions.
pub const ALLOCATORS: &str = "MEMLODE_ALLOCATORS";

/// The variable through which the plug-in learns whether to record the program as written or as optimised.
pub const FIDELITY: &str = "MEMLODE_FIDELITY";

/// The variable with the file of rules for events that are not recorded.
pub const FILTER: &str = "MEMLODE_FILTER";

/// The variable through which the plug-in learns that values are to be recorded.
pub const VALUES: &str = "MEMLODE_VALUES";

/// The variable that links the run-time library into programs, as `--static-runtime` does.
pub const STATIC_RUNTIME: &str = "MEMLODE_STATIC_RUNTIME";

/// Bytes of the largest response file that is looked into; compilers read it themselves.
pub const RESPONSE: u64 = 256 << 20;

/// Runs the compiler. If it refuses options, reports the remedy.
pub fn run(language: Language, args: Vec<OsString>) -> Result<ExitCode> {
    let (own, args) = split_own(language, args)?;
    check_named_by_variables()?;
    let install = Install::find()?;
    let compiler = toolchain::find(language, &install)?;
    let request = argv::parse(&args, &|name| memlode_files::read(Path::new(name), RESPONSE).ok());
    if request.musl && request.stage >= Stage::Compile && !request.freestanding {
        bail!(
            "the target is a system with musl, and memlode records programs of glibc only: build this one for glibc, as \
             {} does without --target",
            compiler.path.display()
        );
    }
    let additions = Additions::new(language, &request, &compiler, &install, &own)?;
    let line = additions.weave(args, &request);
    let links = request.stage == Stage::Link && !request.relocatable;
    let link = match links && !request.freestanding && !own.print {
        true => Link::plan(&compiler, &line, &own.variables),
        false => None,
    };
    let cache = match request.stage >= Stage::Preprocess && !request.freestanding {
        true => ccache::wanted(&install.plugin(compiler.version), &own.variables)?,
        false => None,
    };
    let mut words: Vec<OsString> = Vec::new();
    let mut variables = own.variables;
    if let Some((ccache, files)) = cache {
        words.push(ccache.into());
        variables.push(files);
    }
    words.push(compiler.path.clone().into());
    words.extend(line);

    if own.print {
        let variables = variables.iter().map(|(name, value)| format!("{name}={}", shell_quote(value)));
        let words: Vec<String> = variables.chain(words.iter().map(shell_quote)).collect();
        crate::print::print(&format!("{}\n", words.join(" ")))?;
        return Ok(ExitCode::SUCCESS);
    }
    let cannot = || format!("cannot run {}", words[0].display());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).envs(variables);
    if request.stage < Stage::Preprocess {
        return Err(command.exec()).with_context(cannot);
    }
    let status = child::run_in_our_place(&mut command).with_context(cannot)?;
    if let Some(link) = link.filter(|link| status.success() && link.is_made()) {
        link.tell_foreign();
        #[cfg(feature = "measure")]
        if let Some(line) = link.line().filter(|_| !request.is_shared) {
            // A program without it is as good: nothing is said of failures.
            let _ = memlode_measure::link::keep(&link.output, &line);
        }
    }
    if status.code() == Some(1) {
        refused::explain(language, &compiler, &words);
    }
    Ok(ExitCode::from(child::exit_code(status)))
}

/// Options of memlode's own, accepted only before the first of clang's.
#[derive(Default)]
struct Own {
    print: bool,
    /// Variables for the plug-in.
    variables: Vec<(&'static str, OsString)>,
}

impl Own {
    /// Returns whether code is added before the optimiser runs.
    fn as_written(&self) -> bool {
        let option = self.variables.iter().rev().find(|(name, _)| *name == FIDELITY);
        let asked = option.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(FIDELITY));
        asked.is_some_and(|fidelity| fidelity == "source")
    }

    /// Returns whether programs are to hold the run-time library.
    fn embeds_runtime(&self) -> bool {
        self.variables.iter().any(|(name, _)| *name == STATIC_RUNTIME)
            || std::env::var_os(STATIC_RUNTIME).is_some_and(|value| !value.is_empty() && value != "0")
    }
}

/// Options that name a file for the plug-in, and the variable that it finds it in.
const FILES: [(&str, &str); 2] = [("--allocators", ALLOCATORS), ("--filter", FILTER)];

fn split_own(language: Language, args: Vec<OsString>) -> Result<(Own, Vec<OsString>)> {
    let mut own = Own::default();
    let mut rest = args.into_iter().peekable();
    let mut any = false;
    while let Some(arg) = rest.peek().and_then(|arg| arg.to_str()) {
        let (name, joined) = match arg.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (arg, None),
        };
        if let Some((option, variable)) = FILES.into_iter().find(|(option, _)| *option == name) {
            rest.next();
            let Some(file) = joined.or_else(|| rest.next()) else {
                bail!("memlode {}: {option} needs the name of a file", language.command());
            };
            own.variables.push((variable, existing(option, Path::new(&file))?.into()));
        } else if name == "--fidelity" {
            rest.next();
            let fidelity = joined.or_else(|| rest.next()).unwrap_or_default();
            if !["optimised", "source"].iter().any(|known| *known == fidelity) {
                bail!("--fidelity is '{}'; expected 'optimised' or 'source'", fidelity.display());
            }
            own.variables.push((FIDELITY, fidelity));
        } else if arg == "--values" {
            own.variables.push((VALUES, "1".into()));
            rest.next();
        } else if arg == "--static-runtime" {
            own.variables.push((STATIC_RUNTIME, "1".into()));
            rest.next();
        } else if matches!(arg, "--print" | "--memlode-print") {
            own.print = true;
            rest.next();
        } else if arg == "--" && any {
            // After options of ours a `--` divides; without them it is clang's own.
            rest.next();
            break;
        } else {
            break;
        }
        any = true;
    }
    Ok((own, rest.collect()))
}

/// The file that an option of ours names, whole, or why not.
pub fn existing(option: &str, file: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(file).with_context(|| format!("{option} {}", file.display()))?;
    match memlode_files::read(&absolute, memlode_files::SMALL) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!("{option} {}: there is no such file", file.display())
        }
        read => read.with_context(|| format!("{option} {}", file.display())).map(|_| absolute),
    }
}

/// Refuses files named by variables that would make the plug-in wait in vain.
fn check_named_by_variables() -> Result<()> {
    for (_, variable) in FILES {
        let file = std::env::var_os(variable).filter(|file| !file.is_empty());
        if let Some(file) = file.filter(|file| Path::new(file).exists()) {
            existing(variable, Path::new(&file))?;
        }
    }
    Ok(())
}

/// Arguments that memlode adds, before and after the user's.
#[derive(Debug, Default, PartialEq, Eq)]
struct Additions {
    before: Vec<OsString>,
    after: Vec<OsString>,
}

impl Additions {
    fn new(
        language: Language,
        request: &Request,
        compiler: &Compiler,
        install: &Install,
        own: &Own,
    ) -> Result<Additions> {
        let mut additions = Additions::default();
        let as_written = own.as_written();
        // Kernels, firmware and C libraries have neither thread-local storage nor a loader to rely on.
        if request.freestanding {
            return Ok(additions);
        }
        let plugin = install.plugin(compiler.version);
        let links = request.stage == Stage::Link && !request.relocatable;
        // Where the preprocessor alone runs, too: what it finds goes into a compiler, and build systems ask where it looks.
        if request.preprocesses && language != Language::Fortran && install.headers().is_dir() {
            // Behind all others: nothing of the program's own is hidden.
            additions.after.extend(["-idirafter".into(), install.headers().into()]);
        }
        if request.generates_code && request.emulated_tls {
            bail!(
                "-femulated-tls: what memlode records is kept in thread-local storage, which this option replaces by calls; \
                 leave it out, or compile this file without memlode"
            );
        }
        // Hooks must be called where the plug-in sees it, or what they do is not told apart from what is around them.
        if request.generates_code && request.coverage {
            if as_written {
                bail!(
                    "-fsanitize-coverage= with --fidelity=source: calls of hooks are added behind the point where accesses are \
                     found, and a hook that is recorded would tear what is around its calls; leave one of the two out"
                );
            }
            additions.before.extend(["-mllvm".into(), "-sanitizer-early-opt-ep".into()]);
        }
        if request.generates_code && !request.debug_level {
            additions.before.push("-g".into());
            // Alone, it makes no files of debug information; with ours it would.
            if request.splits_debug {
                additions.after.push("-gno-split-dwarf".into());
            }
        }
        // Patches of sources are made by reading these as they were compiled.
        if request.generates_code && language != Language::Fortran {
            additions.before.push("-frecord-command-line".into());
        }
        // Otherwise clang describes classes with a vtable, and std::string, in one translation unit at most,
        // and the others cannot name their members.
        if request.generates_code && language == Language::Cxx {
            additions.before.push("-fstandalone-debug".into());
        }
        if request.generates_code && (!request.lto || as_written) {
            require(&plugin)?;
            additions.before.push(joined("-fpass-plugin=", &plugin));
        }
        if links {
            if request.lto {
                additions.after.push(format!("-fuse-ld=lld-{}", compiler.version).into());
            }
            if request.lto && !as_written {
                require(&plugin)?;
                additions.linker([joined("--load-pass-plugin=", &plugin)]);
                // Code compiled at -O0 says so itself and stays as it is.
                if request.thin_unoptimised {
                    additions.linker(["--lto-O1".into()]);
                }
            }
            if language == Language::Cxx {
                // In front of the library, which the compiler names last; and nobody else is to find them here.
                require(&install.recorded_stdcxx())?;
                additions.linker([install.recorded_stdcxx().into()]);
                additions.linker(["--exclude-libs=libmemlode_stdcxx.a".into()]);
            }
            additions.runtime(request, install, own.embeds_runtime())?;
            if !request.build_id {
                additions.linker(["--build-id".into()]);
            }
        }
        Ok(additions)
    }

    /// Links the run-time library.
    fn runtime(&mut self, request: &Request, install: &Install, embeds: bool) -> Result<()> {
        if request.is_static {
            require(&install.static_runtime())?;
            self.after.extend([joined("-L", install.lib()), "-lmemlode_record".into()]);
            // Code runs there before libc has made room for what is thread-local.
            if !request.own_start && !request.is_shared {
                self.linker(["-e".into(), "__memlode_start".into()]);
            }
        } else if !embeds {
            require(&install.runtime())?;
            self.after.extend([joined("-L", install.lib()), "-lmemlode_record".into()]);
            // -Xlinker and not -Wl: a comma in the path divides nothing. glibc stops a static PIE that has a run path.
            self.linker(["-rpath".into(), install.lib().into()]);
        } else if !request.is_shared {
            // All of it: libraries that come later use it, too.
            let archive = install.embedded_runtime();
            require(&archive)?;
            self.linker(["--whole-archive".into(), archive.into(), "--no-whole-archive".into()]);
            self.linker(["--export-dynamic-symbol=__memlode_*".into()]);
        }
        Ok(())
    }

    fn linker<const N: usize>(&mut self, words: [OsString; N]) {
        for word in words {
            self.after.push("-Xlinker".into());
            self.after.push(word);
        }
    }

    /// The whole line: ours, the user's in their order, ours. After a `--` there are only inputs, so
    /// there ours come before it.
    fn weave(self, mut args: Vec<OsString>, request: &Request) -> Vec<OsString> {
        let end = request.double_dash.unwrap_or(args.len());
        args.splice(end..end, self.after);
        args.splice(0..0, self.before);
        args
    }
}

fn joined(option: &str, path: impl AsRef<OsStr>) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

fn require(file: &Path) -> Result<()> {
    if !file.exists() {
        bail!(
            "{} is missing: build memlode with `make`, or point MEMLODE_HOME at an installation",
            file.display()
        );
    }
    Ok(())
}
