//! Linkage names as their languages write them.

/// A linkage name as its language writes it: Rust, C++, Fortran, or unchanged.
pub fn demangle(linkage: &str) -> String {
    demangle_with(linkage, cpp_demangle::DemangleOptions::new().no_return_type())
}

/// The same without parameter types, for places where a line distinguishes overloads.
pub fn demangle_short(linkage: &str) -> String {
    demangle_with(linkage, cpp_demangle::DemangleOptions::new().no_return_type().no_params())
}

/// A linkage name without the hash that Rust gives each build of a crate.
pub fn without_hash(linkage: &str) -> String {
    rustc_demangle::try_demangle(linkage).map_or_else(|_| linkage.to_string(), |name| format!("{name:#}"))
}

/// The ends of the names of functions that clang, flang and GCC make of the bodies of OpenMP's regions.
const PARALLEL: [&str; 3] = [".omp_outlined", "..omp_par", "._omp_fn."];

/// Words between the name of a parallel region and the line where it begins.
const REGION_LINE: &str = " at line ";

/// The name of a parallel region that begins at a line of its file.
pub fn parallel_region_at(region: &str, line: u32) -> String {
    format!("{region}{REGION_LINE}{line}")
}

/// Returns whether a linkage name is that of the body of a parallel region of OpenMP.
pub fn is_parallel_region(linkage: &str) -> bool {
    PARALLEL.iter().any(|end| linkage.split_once(end).is_some_and(|(of, _)| !of.is_empty()))
}

/// A function without parameter types, of its names in a report: where the line of a parallel region is
/// stands in the first alone.
pub fn short_name(function: &str, linkage: &str) -> String {
    let name = demangle_short(linkage);
    match function.rsplit_once(REGION_LINE).filter(|_| is_parallel_region(linkage)) {
        Some((_, line)) => format!("{name}{REGION_LINE}{line}"),
        None => name,
    }
}

fn demangle_with(linkage: &str, options: cpp_demangle::DemangleOptions) -> String {
    let parallel = PARALLEL.iter().find_map(|end| linkage.split_once(end)).filter(|(of, _)| !of.is_empty());
    match parallel {
        Some((of, _)) => format!("{}, parallel region", demangle_plain(of, options)),
        None => demangle_plain(linkage, options),
    }
}

fn demangle_plain(linkage: &str, options: cpp_demangle::DemangleOptions) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(linkage) {
        // Without the hash that tells apart two versions of a crate.
        return format!("{name:#}");
    }
    // Hostile names can nest deeply and expand: the input is bounded here, the depth by the demangler.
    if linkage.starts_with("_Z") && linkage.len() <= 16 << 10 {
        let demangled = cpp_demangle::Symbol::new(linkage)
            .ok()
            .and_then(|symbol| symbol.demangle_with_options(&options.recursion_limit(128)).ok());
        if let Some(name) = demangled.filter(|name| !name.is_empty()) {
            return name;
        }
    }
    fortran(linkage).unwrap_or_else(|| linkage.to_string())
}

/// The main program of Fortran, by flang and by gfortran.
const PROGRAMS: [&str; 2] = ["_QQmain", "MAIN__"];

/// A procedure of Fortran inside a module, or inside another procedure: `field::step`. flang writes a letter
/// before each part of a name, which is in lower case (its documentation, *Bijective Internal Name
/// Uniquing*); gfortran writes `__field_MOD_step`.
fn fortran(linkage: &str) -> Option<String> {
    if PROGRAMS.contains(&linkage) {
        return Some("main program".to_owned());
    }
    if let Some((module, procedure)) = linkage.strip_prefix("__").and_then(|name| name.split_once("_MOD_")) {
        let are_names = !module.is_empty() && !procedure.is_empty();
        return are_names.then(|| format!("{module}::{procedure}"));
    }
    let mut rest = linkage.strip_prefix("_Q")?;
    let mut parts = Vec::new();
    loop {
        let mut letters = rest.chars();
        let tag = letters.next()?;
        let name = letters.as_str();
        let end = name.find(|letter: char| letter.is_ascii_uppercase()).unwrap_or(name.len());
        let (part, behind) = name.split_at(end);
        match tag {
            // Modules, submodules and procedures; blocks of these have a number, the program has none.
            'M' | 'S' | 'F' if !behind.is_empty() => {
                parts.extend(Some(part).filter(|part| !part.is_empty()));
            }
            'B' if !behind.is_empty() => {}
            'P' if behind.is_empty() && !part.is_empty() => {
                parts.push(part);
                return Some(parts.join("::"));
            }
            _ => return None,
        }
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_three_languages() {
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(
            demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
            "std::vector<int, std::allocator<int> >::push_back(int const&)"
        );
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("_Znonsense"), "_Znonsense");
        assert_eq!(demangle_short("_ZN3foo3barEi"), "foo::bar");
    }

    #[test]
    fn procedures_of_fortran() {
        for (linkage, name) in [
            ("_QMfieldPstep", "field::step"),
            ("_QMfieldFhostPinner", "field::host::inner"),
            ("_QMfieldSpartPsweep", "field::part::sweep"),
            ("_QFPinner", "inner"),
            ("_QPsolve", "solve"),
            ("__field_MOD_step", "field::step"),
            ("_QQmain", "main program"),
            ("MAIN__", "main program"),
            // A variable, a type, and names of C.
            ("_QMfieldEtable", "_QMfieldEtable"),
            ("_QMfieldTcell", "_QMfieldTcell"),
            ("_Queue", "_Queue"),
            ("_QP", "_QP"),
            ("__MOD_", "__MOD_"),
            ("_Qé", "_Qé"),
        ] {
            assert_eq!(demangle(linkage), name);
        }
    }

    #[test]
    fn bodies_of_parallel_regions_are_named_by_their_function() {
        assert_eq!(demangle("main.omp_outlined"), "main, parallel region");
        assert_eq!(demangle("_ZN3foo3barEi.omp_outlined_debug__"), "foo::bar(int), parallel region");
        assert_eq!(demangle("_QQmain..omp_par"), "main program, parallel region");
        assert_eq!(demangle("__field_MOD_step._omp_fn.1"), "field::step, parallel region");
        assert_eq!(demangle(".omp_outlined"), ".omp_outlined");
        assert_eq!(
            short_name("f(int), parallel region at line 3", "_Z1fi.omp_outlined"),
            "f, parallel region at line 3"
        );
        assert_eq!(short_name("f(int)", "_Z1fi"), "f");
        assert!(is_parallel_region("main.omp_outlined.3") && !is_parallel_region(".omp_outlined"));
    }

    #[test]
    fn a_hostile_name_comes_back() {
        let deep = format!("_Z{}", "N".repeat(100_000));
        assert_eq!(demangle(&deep), deep);
        let deep = format!("_Z1fI{}E", "P".repeat(10_000));
        assert_eq!(demangle(&deep), deep);
    }
}
