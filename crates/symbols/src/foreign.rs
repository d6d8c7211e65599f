//! Code of an image that memlode did not compile: functions that are not in the pass's list.
//!
//! The list has the compiled code, symbols have all code. The implementation of a language is left
//! out, since every program has it: the C run-time start files, the compilers' libraries, and
//! Rust's own library, which comes as machine code. In a program
//! that is linked statically this includes the C library, which is known by the system's archives.

use std::collections::{BTreeMap, BTreeSet};

use memlode_trace::format::section;
use memlode_trace::{ForeignCode, ForeignFunction};
use object::elf::{self, STT_FILE, STT_FUNC};
use object::read::elf::ElfSymbol;
use object::{Endianness, Object, ObjectSection, ObjectSymbol, ReadRef};

use crate::{Elf, SECTION_BYTES, system};

/// A function that is in a program only if the C library is.
const LIBRARY_START: &str = "__libc_start_main";

/// A function that is in an image only if memlode's run-time library is.
const RUNTIME_ENTRY: &str = "__memlode_refill";

/// Functions of libc that the run-time library puts its own in front of. All are weak.
const INTERPOSED: [&str; 21] = [
    "abort",
    "bsd_signal",
    "clone",
    "execl",
    "execle",
    "execlp",
    "execv",
    "execve",
    "execveat",
    "execvp",
    "execvpe",
    "fexecve",
    "longjmp",
    "prctl",
    "pthread_setcanceltype",
    "sigaction",
    "siglongjmp",
    "signal",
    "sigset",
    "syscall",
    "sysv_signal",
];

/// A symbol of a function.
struct Named {
    name: String,
    bytes: u64,
    is_local: bool,
    is_weak: bool,
}

/// Returns the functions of an image that memlode did not compile; `None` if the image has no list
/// of compiled code. A stripped image has no symbols, and so no functions.
pub fn code<'data, R: ReadRef<'data>>(file: &Elf<'data, R>) -> Option<ForeignCode> {
    let compiled = compiled(file)?;
    let mut by_address: BTreeMap<u64, Vec<Named>> = BTreeMap::new();
    // Local symbols stand behind that of their unit.
    let mut is_in_runtime = false;
    for symbol in file.symbols() {
        if symbol.elf_symbol().st_type() == STT_FILE {
            let unit = symbol.name_bytes().unwrap_or_default();
            is_in_runtime = RUNTIME_UNITS.iter().any(|beginning| unit.starts_with(beginning.as_bytes()));
        }
        if let Some(named) = function(&symbol).filter(|named| !(named.is_local && is_in_runtime)) {
            by_address.entry(symbol.address()).or_default().push(named);
        }
    }
    let is_compiled = |address: u64| {
        let below = compiled.partition_point(|&(start, _)| start <= address);
        below > 0 && address < compiled[below - 1].1
    };
    let (ours, others): (Vec<_>, Vec<_>) = by_address.iter().partition(|(address, _)| is_compiled(**address));
    let ours: BTreeSet<&str> = ours.iter().flat_map(|(_, names)| *names).map(|of| of.name.as_str()).collect();
    let is_sanitized = by_address.values().flatten().any(|of| of.name.starts_with("__sanitizer_"));
    let all: BTreeSet<&str> = by_address.values().flatten().map(|of| of.name.as_str()).collect();
    let beside: BTreeSet<&str> = BESIDE
        .iter()
        .filter(|(global, _)| all.contains(global))
        .flat_map(|(_, local)| *local)
        .copied()
        .collect();
    let has_runtime = all.contains(RUNTIME_ENTRY);
    let is_theirs = |of: &Named| {
        let base = of.name.split('.').next().unwrap_or_default();
        is_implementation(&of.name)
            || has_runtime && of.is_weak && INTERPOSED.contains(&of.name.as_str())
            || is_sanitized && is_sanitizers(&of.name)
            || of.is_local && beside.contains(base)
    };
    let start = by_address.values().flatten().find(|of| of.name == LIBRARY_START);
    let systems = start.map(|_| system::functions()).unwrap_or_default();
    let of_system = |of: &Named| systems.contains(&(of.name.clone(), of.bytes));
    // Linked with another version of the library, functions have other lengths.
    let has_libraries = start.is_some_and(|start| !of_system(start));
    let mut found: Vec<ForeignFunction> = others
        .into_iter()
        .filter(|(_, names)| !names.iter().any(|of| is_theirs(of) || !has_libraries && of_system(of)))
        .filter_map(|(_, names)| names.iter().min_by_key(|of| (of.is_local, &of.name)))
        .filter(|of| whole(&of.name).is_none_or(|whole| !ours.contains(whole)))
        .map(|of| ForeignFunction { name: of.name.clone(), bytes: of.bytes, is_local: of.is_local })
        .collect();
    found.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
    Some(ForeignCode { functions: found, has_libraries })
}

/// Returns begin and end of each function that memlode compiled, by address.
fn compiled<'data, R: ReadRef<'data>>(file: &Elf<'data, R>) -> Option<Vec<(u64, u64)>> {
    let mut ranges = Vec::new();
    let mut is_listed = false;
    for (name, place_bytes) in [(section::FUNCTIONS, 4), (section::FAR_FUNCTIONS, 8)] {
        let Some(list) = file.section_by_name(name).filter(|list| list.size() <= SECTION_BYTES) else {
            continue;
        };
        let bytes = list.data().unwrap_or_default();
        is_listed = true;
        // A place is a distance from itself; a length follows.
        for (index, entry) in bytes.chunks_exact(place_bytes + 4).enumerate() {
            let (place, length) = entry.split_at(place_bytes);
            let here = list.address().wrapping_add((index * (place_bytes + 4)) as u64);
            let start = here.wrapping_add_signed(signed(place));
            ranges.push((start, start.saturating_add(signed(length) as u32 as u64)));
        }
    }
    ranges.sort_unstable();
    is_listed.then_some(ranges)
}

/// A number of 4 or 8 bytes.
fn signed(bytes: &[u8]) -> i64 {
    match (bytes.try_into().map(i32::from_le_bytes), bytes.try_into().map(i64::from_le_bytes)) {
        (Ok(narrow), _) => narrow.into(),
        (_, Ok(wide)) => wide,
        _ => 0,
    }
}

fn function<'data, R: ReadRef<'data>>(
    symbol: &ElfSymbol<'data, '_, elf::FileHeader64<Endianness>, R>,
) -> Option<Named> {
    let is_function =
        symbol.elf_symbol().st_type() == STT_FUNC && symbol.is_definition() && symbol.size() > 0;
    let name = is_function.then(|| symbol.name_bytes().ok())??;
    Some(Named {
        name: String::from_utf8_lossy(name).into_owned(),
        bytes: symbol.size(),
        is_local: symbol.is_local(),
        is_weak: symbol.is_weak(),
    })
}

/// Returns the function of which a symbol is only a part: compilers put rarely executed code
/// elsewhere.
fn whole(name: &str) -> Option<&str> {
    [".cold", ".eh", ".__part."].iter().filter_map(|part| name.find(part)).min().map(|at| &name[..at])
}

/// Returns whether a function of a program with a sanitizer is the sanitizer's. It has its own
/// `operator new` and `operator delete` of all kinds, and its own versions of functions of libc.
fn is_sanitizers(name: &str) -> bool {
    ["_Znw", "_Zna", "_Zdl", "_Zda"].iter().any(|operator| name.starts_with(operator))
        || name.starts_with("_Z") && name.contains("InterceptorCommon")
        || ["real_clock_gettime", "real_pthread_attr_getstack"].contains(&name)
}

/// Returns whether a name is reserved to the implementation of a language. C reserves names that
/// begin with an underscore; mangled names of other languages begin with one, too.
fn is_implementation(name: &str) -> bool {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return is_rusts_own(&rust.to_string());
    }
    if let Some(rest) = name.strip_prefix("_Z") {
        // Of the outermost name space: sanitizers have a reserved one, and Fortran's library is in C++.
        let rest = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        return rest.starts_with("__")
            || name.contains("__sanitizer")
            || FORTRANS_OWN.iter().any(|own| rest.starts_with(own));
    }
    let is_fortran = name.starts_with("_Q") || name.contains("_MOD_");
    (name.starts_with('_') && !is_fortran)
        || name.starts_with("memlode_")
        || name.starts_with("OUTLINED_FUNCTION_")
        || name.contains(".module_ctor")
        || name.contains(".module_dtor")
        || IN_PROGRAMS.contains(&name)
}

/// Beginnings of the source files of compilers' own libraries: start files, libgcc, sanitizers,
/// profiles.
const RUNTIME_UNITS: [&str; 17] = [
    "InstrProfiling",
    "asan_",
    "cpuinfo.",
    "crtfastmath.c",
    "crtprec.c",
    "crtstuff.c",
    "emutls.c",
    "hwasan_",
    "interception_",
    "libgcc2.c",
    "lsan_",
    "msan_",
    "sanitizer_",
    "tsan_",
    "ubsan_",
    "unwind-",
    "xray_",
];

/// Local functions of libgcc's objects by a global one of the same object. These objects were
/// compiled with link-time optimisation and name no source file, so that lld's symbol tables tell
/// nothing of their unit.
const BESIDE: [(&str, &[&str]); 7] = [
    ("__cpu_indicator_init", &["get_available_features", "has_cpu_feature", "set_cpu_feature"]),
    ("__bid128_div", &["handle_UF_128_rem", "handle_UF_128"]),
    (
        "__bid128_fma",
        &["add256", "sub256", "nr_digits256", "rounding_correction", "add_and_round", "bid128_ext_fma"],
    ),
    ("__bid64_div", &["get_BID64_UF", "get_BID64"]),
    ("__emutls_get_address", &["emutls_init", "emutls_destroy", "emutls_alloc", "emutls_key_destructor"]),
    (
        "_Unwind_Find_FDE",
        &[
            "add_fdes",
            "base_of_encoded_value",
            "classify_object_over_fdes",
            "fde_mixed_encoding_compare",
            "fde_single_encoding_compare",
            "fde_unencoded_compare",
            "frame_downheap",
            "frame_heapsort",
            "get_cie_encoding",
            "linear_search_fdes",
            "read_encoded_value_with_base",
            "search_object",
        ],
    ),
    (
        "_Unwind_RaiseException",
        &[
            "execute_cfa_program",
            "execute_stack_op",
            "init_dwarf_reg_size_table",
            "read_encoded_value",
            "uw_frame_state_for",
            "uw_init_context_1",
            "uw_install_context_1",
            "uw_update_context_1",
        ],
    ),
];

/// Functions that glibc puts into programs that call them, and Rust into all of its own.
const IN_PROGRAMS: [&str; 11] = [
    "at_quick_exit",
    "atexit",
    "fstat",
    "fstat64",
    "lstat",
    "lstat64",
    "mknod",
    "pthread_atfork",
    "rust_eh_personality",
    "stat",
    "stat64",
];

/// Beginnings of the mangled names of flang's library.
const FORTRANS_OWN: [&str; 3] = ["Fortran6common", "Fortran7decimal", "Fortran7runtime"];

/// Crates that Rust's own library is made of.
const RUSTS_OWN: [&str; 17] = [
    "addr2line",
    "adler",
    "adler2",
    "alloc",
    "compiler_builtins",
    "core",
    "gimli",
    "hashbrown",
    "memchr",
    "miniz_oxide",
    "object",
    "panic_abort",
    "panic_unwind",
    "rustc_demangle",
    "std",
    "std_detect",
    "unwind",
];

fn is_rusts_own(demangled: &str) -> bool {
    // `<alloc::string::String as core::fmt::Write>::write_str`
    let path = demangled.trim_start_matches(['<', '&', '*', '[', '(']);
    let path = ["dyn ", "mut ", "const "].iter().fold(path, |path, word| path.trim_start_matches(word));
    let end = path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
    let first = &path[..end];
    RUSTS_OWN.contains(&first) || first.starts_with("__rust")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_implementation_are_told_from_those_of_programs() {
        let theirs = ["grind", "_Z5grindl", "_ZN4Tree6insertEi", "__grid_MOD_sweep", "_QMgridPsweep"];
        assert_eq!(theirs.map(is_implementation), [false; 5]);
        let own = ["_start", "__udivti3", "_Unwind_Resume", "atexit", "asan.module_ctor"];
        assert_eq!(own.map(is_implementation), [true; 5]);
        let sanitizers = ["_ZN11__sanitizer6StatusEv", "_Z5printPN11__sanitizer5StackEb"];
        assert_eq!(sanitizers.map(is_implementation), [true; 2]);
        assert!(is_implementation("_ZN4core3fmt5write17h0123456789abcdefE"));
        assert!(!is_implementation("_ZN4mine3fmt5write17h0123456789abcdefE"));
    }

    #[test]
    fn a_part_belongs_to_its_function() {
        assert_eq!(whole("walk.cold"), Some("walk"));
        assert_eq!(whole("walk.constprop.0.cold.7"), Some("walk.constprop.0"));
        assert_eq!(whole("walk.isra.0"), None);
    }
}
