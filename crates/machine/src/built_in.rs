//! The files of `machines/`, part of the program.

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../machines/", $name, ".toml")))),+];
    };
}

built_in!(
    "generic",
    "skylake-sp",
    "icelake-sp",
    "sapphire-rapids",
    "zen3",
    "zen4",
    "neoverse-n1",
    "apple-m1-like",
);

/// Names of the built-in machines.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The text of a built-in machine's file.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use crate::Machine;

    #[test]
    fn every_file_is_built_in_and_named_as_its_file() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
        let mut files: Vec<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().unwrap().is_file())
            .map(|entry| entry.file_name().into_string().unwrap())
            .map(|name| name.strip_suffix(".toml").expect("only .toml files in machines/").to_string())
            .collect();
        files.sort();
        let mut names: Vec<&str> = super::names().collect();
        names.sort();
        assert_eq!(files, names);
        for name in names {
            let machine = Machine::named(name).unwrap();
            assert_eq!(machine.name, name);
            assert!(!machine.sources.is_empty());
        }
    }

    #[test]
    fn sizes_of_sliced_caches_are_whole_slices() {
        for (name, sets_per_core) in [("skylake-sp", 2048), ("icelake-sp", 2048), ("sapphire-rapids", 2048)] {
            let machine = Machine::named(name).unwrap();
            assert_eq!(machine.levels[2].sets(), sets_per_core * u64::from(machine.cores), "{name}");
        }
    }
}
