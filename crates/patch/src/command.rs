//! The command that compiled a unit, as far as reading its source depends on it.

use std::path::{Path, PathBuf};

/// A source file and the words that it is compiled with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The source, absolute.
    pub file: PathBuf,
    /// Options that change the meaning of the source. Options that run or write something are left
    /// out.
    pub options: Vec<String>,
}

impl Unit {
    /// Returns whether clang reads it as C++.
    pub fn is_cxx(&self) -> bool {
        let language =
            self.options.iter().rposition(|option| option == "-x").and_then(|at| self.options.get(at + 1));
        match language {
            Some(language) => language.starts_with("c++"),
            None => self.file.extension().is_none_or(|ending| ending != "c"),
        }
    }
}

/// Options followed by a value.
const WITH_VALUE: [&str; 13] = [
    "-D",
    "-U",
    "-I",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-include",
    "-imacros",
    "-x",
    "-target",
    "--sysroot",
    "-isysroot",
    "-std",
];

/// Options of which only the value is a path.
const PATHS: [&str; 8] =
    ["-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros", "--sysroot", "-isysroot"];

/// Beginnings of options that are whole in one word.
const WHOLE: [&str; 22] = [
    "-std=",
    "--std=",
    "-ansi",
    "-O",
    "-m",
    "--target=",
    "-stdlib=",
    "-pthread",
    "-nostdinc",
    "-fshort-",
    "-fno-short-",
    "-fpack-struct",
    "-fsigned-",
    "-funsigned-",
    "-fms-",
    "-fexceptions",
    "-fno-exceptions",
    "-frtti",
    "-fno-rtti",
    "-fopenmp",
    "-fgnu89-inline",
    "-fchar8_t",
];

/// Endings of names that clang reads as C or C++.
const ENDINGS: [&str; 9] = ["c", "C", "cc", "cp", "cpp", "cxx", "c++", "CC", "CPP"];

/// Returns whether a name is that of a source in C or C++.
pub fn is_source(file: &Path) -> bool {
    file.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Returns the names of a command's sources, as they were typed.
pub fn inputs(words: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    let mut before = "";
    for word in words.iter().skip(1) {
        let is_value = WITH_VALUE.contains(&before)
            || matches!(before, "-o" | "-MF" | "-MT" | "-MQ" | "-Xclang" | "-Xlinker");
        if !word.starts_with('-') && !is_value && is_source(Path::new(word)) {
            found.push(word.as_str());
        }
        before = word;
    }
    found
}

/// Returns the options that reading depends on, with absolute paths.
pub fn options(words: &[String], directory: &Path) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let known = WITH_VALUE.iter().find(|option| word.starts_with(**option) && !word.starts_with("-std="));
        // `-include-pch` and the like are other options.
        let known = known.filter(|option| word == *option || matches!(**option, "-D" | "-U" | "-I"));
        if let Some(option) = known {
            let value = match &word[option.len()..] {
                "" => words.next().cloned().unwrap_or_default(),
                joined => joined.to_string(),
            };
            kept.push((*option).to_string());
            kept.push(match PATHS.contains(option) {
                true => directory.join(value).display().to_string(),
                false => value,
            });
        } else if WHOLE.iter().any(|option| word.starts_with(option)) && !word.starts_with("-mllvm") {
            kept.push(word.clone());
        } else if word.starts_with("-mllvm") || word == "-Xclang" || word == "-o" {
            words.next();
        }
    }
    kept
}

/// Splits a line that clang recorded: blanks and backslashes in words have a backslash before them.
pub fn split(line: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => word.extend(letters.next()),
            ' ' => words.push(std::mem::take(&mut word)),
            letter => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_or_writes_something_is_left_out() {
        let line = r"clang -g -fpass-plugin=/evil.so -Xclang -load -Xclang /evil.so -D A=a\ b -I inc -mllvm -x -O2 -o p -MF d @file a.c b.cc";
        let words = split(line);
        assert_eq!(inputs(&words), ["a.c", "b.cc"]);
        assert_eq!(options(&words, Path::new("/w")), ["-D", "A=a b", "-I", "/w/inc", "-O2"]);
    }
}
