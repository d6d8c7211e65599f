//! The places of memlode's own libraries.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The LLVM versions for which there is a pass plug-in, preferred first.
pub const LLVM_VERSIONS: [u32; 2] = [22, 19];

/// The directory with the run-time library and the pass plug-ins.
#[derive(Clone, Debug)]
pub struct Install {
    lib: PathBuf,
}

impl Install {
    /// `$MEMLODE_HOME/lib`, or `../lib` from this executable, or the build tree's `target/memlode/lib`
    /// when this executable is cargo's own output.
    pub fn find() -> Result<Install> {
        if let Some(home) = std::env::var_os("MEMLODE_HOME") {
            let lib = Path::new(&home).join("lib");
            if !lib.is_dir() {
                bail!(
                    "MEMLODE_HOME is {}, which has no directory `lib`: point it at memlode's installation, or unset it",
                    home.display()
                );
            }
            return Ok(Install { lib: std::path::absolute(&lib).unwrap_or(lib) });
        }
        let exe = std::env::current_exe().context(
            "the path of the memlode executable is unknown: set MEMLODE_HOME to memlode's installation",
        )?;
        let exe = exe.canonicalize().unwrap_or(exe);
        let candidates = candidates(&exe);
        candidates
            .iter()
            .find(|lib| lib.join(RUNTIME).exists())
            .or(candidates.first())
            .map(|lib| Install { lib: lib.clone() })
            .context(
                "memlode's executable has no parent directory: set MEMLODE_HOME to memlode's installation",
            )
    }

    /// The library directory itself.
    pub fn lib(&self) -> &Path {
        &self.lib
    }

    /// The pass plug-in for an LLVM version, whether it exists or not.
    pub fn plugin(&self, version: u32) -> PathBuf {
        self.lib.join(format!("memlode-pass-{version}.so"))
    }

    /// The directory with `memlode.h`, whether it exists or not.
    pub fn headers(&self) -> PathBuf {
        self.lib.with_file_name("include")
    }

    /// The run-time library, whether it exists or not.
    pub fn runtime(&self) -> PathBuf {
        self.lib.join(RUNTIME)
    }

    /// The library that moves large blocks of the heap, whether it exists or not.
    pub fn stagger(&self) -> PathBuf {
        self.lib.join("libmemlode_stagger.so")
    }

    /// The library that notes the blocks of a sampled program, whether it exists or not.
    pub fn blocks(&self) -> PathBuf {
        self.lib.join("libmemlode_blocks.so")
    }

    /// The library that says which blocks libraries make for a recorded program, whether it exists or not.
    pub fn library_blocks(&self) -> PathBuf {
        self.lib.join("libmemlode_library.so")
    }

    /// The run-time library for static programs, whether it exists or not.
    pub fn static_runtime(&self) -> PathBuf {
        self.lib.join("libmemlode_record.a")
    }

    /// Functions of libstdc++ that are recorded, whether it exists or not.
    pub fn recorded_stdcxx(&self) -> PathBuf {
        self.lib.join("libmemlode_stdcxx.a")
    }

    /// The run-time library to be linked into programs that load others, whether it exists or not.
    pub fn embedded_runtime(&self) -> PathBuf {
        self.lib.join("libmemlode_embed.a")
    }
}

const RUNTIME: &str = "libmemlode_record.so";

fn candidates(exe: &Path) -> Vec<PathBuf> {
    let Some(bin) = exe.parent() else { return Vec::new() };
    let mut found: Vec<PathBuf> = bin.parent().map(|prefix| prefix.join("lib")).into_iter().collect();
    // target/debug/memlode and target/debug/deps/cli-0123: the build tree installs beside them.
    for directory in bin.ancestors().take(3) {
        found.push(directory.join("memlode/lib"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_beside_bin_first_and_then_in_the_build_tree() {
        assert_eq!(candidates(Path::new("/opt/memlode/bin/memlode"))[0], Path::new("/opt/memlode/lib"));
        assert!(
            candidates(Path::new("/src/target/debug/memlode")).contains(&"/src/target/memlode/lib".into())
        );
        assert!(
            candidates(Path::new("/src/target/debug/deps/cli-1")).contains(&"/src/target/memlode/lib".into())
        );
    }
}
