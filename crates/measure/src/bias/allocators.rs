//! Addresses that allocators give to equal buffers, and which low bits of them agree.
//!
//! A loop that reads one buffer and writes another meets stores to the same offset if the buffers' addresses agree in
//! their low 12 bits; with huge pages, low 20 bits that agree are physical ones.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::Error;
use crate::process::fix_addresses;

/// Sizes of buffers that are tried, in bytes.
pub const SIZES: [usize; 4] = [5120, 64 << 10, 1 << 20, 4 << 20];
/// Buffers of each size, one after the other.
pub const BUFFERS: usize = 4;

/// An allocator, and how it is put in place of the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocatorLibrary {
    /// Its name.
    pub name: String,
    /// The library to preload; none for the one that programs have anyhow.
    pub library: Option<PathBuf>,
    /// The variable that makes it ask for huge pages, and its value.
    pub huge: Option<(&'static str, &'static str)>,
}

/// The way in which the addresses of consecutive buffers agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// Pairs of consecutive buffers.
    pub pairs: usize,
    /// Pairs that agree in the low 12 bits.
    pub low12: usize,
    /// Pairs that agree in the low 20 bits.
    pub low20: usize,
    /// Pairs that agree in the low 21 bits.
    pub low21: usize,
}

/// The places that one allocator gives.
#[derive(Clone, Debug, Serialize)]
pub struct AllocatorRow {
    /// The allocator.
    pub allocator: String,
    /// It had to use huge pages.
    pub huge: bool,
    /// One entry for each size, as in [`SIZES`].
    pub sizes: Vec<Agreement>,
}

/// The allocators that are installed, the usual one first.
pub fn installed() -> Vec<AllocatorLibrary> {
    let known = [
        ("jemalloc", "libjemalloc.so.2", Some(("MALLOC_CONF", "thp:always"))),
        ("mimalloc", "libmimalloc.so.2", Some(("MIMALLOC_ALLOW_LARGE_OS_PAGES", "1"))),
        ("tcmalloc", "libtcmalloc_minimal.so.4", None),
    ];
    let folder = |file: &str| {
        let folders = [
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib64",
            "/usr/lib",
            "/usr/local/lib",
        ];
        folders.iter().map(|folder| Path::new(folder).join(file)).find(|path| path.exists())
    };
    let usual = AllocatorLibrary {
        name: "usual".into(),
        library: None,
        huge: Some(("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")),
    };
    let mut found = vec![usual];
    for (name, file, huge) in known {
        found.extend(folder(file).map(|path| AllocatorLibrary {
            name: name.into(),
            library: Some(path),
            huge,
        }));
    }
    found
}

/// Addresses of [`BUFFERS`] buffers of each of the [`SIZES`], from this process's allocator.
pub fn addresses() -> Vec<Vec<usize>> {
    let one = |size: usize| {
        // SAFETY: plain allocations, which are written to and never freed: an address is not given twice.
        unsafe {
            let buffer = libc::malloc(size).cast::<u8>();
            if !buffer.is_null() {
                buffer.write_volatile(1);
            }
            buffer as usize
        }
    };
    SIZES.iter().map(|size| (0..BUFFERS).map(|_| one(*size)).collect()).collect()
}

/// Runs the `program`, whose output is one line of addresses for each size, with an allocator.
///
/// # Errors
/// If it cannot be run or prints something else.
pub fn ask(
    allocator: &AllocatorLibrary,
    huge: bool,
    program: &[&std::ffi::OsStr],
) -> Result<AllocatorRow, Error> {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).stdin(Stdio::null()).stderr(Stdio::null());
    for variable in ["LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_CONF", "MIMALLOC_ALLOW_LARGE_OS_PAGES"] {
        command.env_remove(variable);
    }
    if let Some(library) = &allocator.library {
        command.env("LD_PRELOAD", library);
    }
    command.envs(allocator.huge.filter(|_| huge));
    fix_addresses(&mut command);
    let output = command
        .output()
        .map_err(|source| Error::NotStarted { program: program[0].to_string_lossy().into_owned(), source })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |line: &str| line.split(' ').map(str::parse).collect::<Result<Vec<usize>, _>>();
    let sizes: Result<Vec<_>, _> = text.lines().map(line).collect();
    let sizes = sizes.ok().filter(|sizes| sizes.len() == SIZES.len() && output.status.success());
    let sizes = sizes.ok_or_else(|| {
        Error::Usage(format!("a program with {} in place of malloc gave no addresses", allocator.name))
    })?;
    let sizes = sizes.iter().map(|addresses| agreement(addresses)).collect();
    Ok(AllocatorRow { allocator: allocator.name.clone(), huge, sizes })
}

/// Which low bits of consecutive addresses agree.
pub fn agreement(addresses: &[usize]) -> Agreement {
    let equal =
        |bits: u32| addresses.windows(2).filter(|pair| (pair[0] ^ pair[1]).trailing_zeros() >= bits).count();
    Agreement {
        pairs: addresses.len().saturating_sub(1),
        low12: equal(12),
        low20: equal(20),
        low21: equal(21),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_that_agree() {
        let mib = 1 << 20;
        let found = agreement(&[mib, 2 * mib, 4 * mib + 4096, 6 * mib + 4096]);
        assert_eq!(found, Agreement { pairs: 3, low12: 3, low20: 2, low21: 1 });
    }
}
