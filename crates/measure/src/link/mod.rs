//! The same objects linked in other orders, so that the same code lies at other addresses.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use memlode_symbols::objects::defined_functions;
use rand::seq::SliceRandom;

use crate::Error;
use crate::stats::random;

mod confined;
mod kept;

pub use confined::confine;
pub use kept::{KeptLine, keep};

/// Stands for the program that a link line makes.
pub const OUT: &str = "{out}";
/// Stands for a file that names functions in the order in which lld is to place them.
const ORDER: &str = "{order}";
/// The placeholder for the number of a variant.
const SEED: &str = "{seed}";
/// Words that stand for others in a link line.
pub const PLACEHOLDERS: [&str; 3] = [OUT, ORDER, SEED];

/// A command that links a program, and its variable parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkLine {
    words: Vec<String>,
    /// Folder in which the command runs, if not ours.
    folder: Option<PathBuf>,
    /// Positions of words that are object files.
    objects: Vec<usize>,
    /// Functions that the objects define.
    functions: Vec<String>,
}

/// The variation of a program's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkVariation {
    /// Objects, whose order varies if there are two or more.
    pub objects: usize,
    /// Functions, whose order varies if there are two or more.
    pub functions: usize,
    /// The line has a `{seed}` of its own.
    pub has_seed: bool,
}

impl LinkLine {
    /// Reads a line such as `cc a.o b.o -o {out}`. Its object files are permuted. If it has
    /// `{order}`, as in `-Wl,--symbol-ordering-file,{order}`, so are the functions in them. A
    /// script that permutes something by itself can depend on `{seed}`.
    ///
    /// # Errors
    /// If the line cannot be split into words, makes no `{out}`, or has nothing that could be
    /// varied.
    pub fn parse(line: &str) -> Result<LinkLine, Error> {
        let words = shell_words::split(line)
            .map_err(|why| Error::Usage(format!("the link line `{line}` cannot be read: {why}")))?;
        if !words.iter().any(|word| word.contains(OUT)) {
            let hint = "write {out} where it names the program that it makes, as in `cc a.o b.o -o {out}`";
            return Err(Error::Usage(format!("the link line `{line}` has no {OUT}: {hint}")));
        }
        let found = LinkLine::of(words, None, &["o"], None)?;
        if !found.can_vary() {
            let hint = "it needs two object files that exist, {order} and functions in them, or {seed}";
            return Err(Error::Usage(format!("nothing in the link line `{line}` can be varied: {hint}")));
        }
        Ok(found)
    }

    /// Makes a line from words that make `{out}` in a folder. Files with one of these extensions
    /// are permuted; only inputs, where these are known.
    fn of(
        words: Vec<String>,
        folder: Option<PathBuf>,
        extensions: &[&str],
        inputs: Option<&[usize]>,
    ) -> Result<LinkLine, Error> {
        let path = |word: &String| folder.as_deref().unwrap_or(Path::new("")).join(word);
        let is_object = |word: &String| {
            let extension = Path::new(word).extension().and_then(|extension| extension.to_str());
            extension.is_some_and(|extension| extensions.contains(&extension)) && path(word).is_file()
        };
        let is_input = |at: &usize| inputs.is_none_or(|inputs| inputs.contains(at));
        let objects: Vec<usize> =
            (0..words.len()).filter(|at| is_input(at) && is_object(&words[*at])).collect();
        let functions = match words.iter().any(|word| word.contains(ORDER)) {
            true => functions(objects.iter().map(|at| path(&words[*at])))?,
            false => Vec::new(),
        };
        Ok(LinkLine { words, folder, objects, functions })
    }

    fn can_vary(&self) -> bool {
        self.objects.len() > 1
            || self.functions.len() > 1
            || self.words.iter().any(|word| word.contains(SEED))
    }

    /// Returns what is varied.
    pub fn varies(&self) -> LinkVariation {
        LinkVariation {
            objects: self.objects.len(),
            functions: self.functions.len(),
            has_seed: self.words.iter().any(|word| word.contains(SEED)),
        }
    }

    /// Links variant `seed` into a folder; 0 is the order that the line has. The program's path.
    ///
    /// # Errors
    /// If the command cannot be run or fails, or makes no program.
    pub fn link(&self, seed: u64, folder: &Path) -> Result<PathBuf, Error> {
        let folder = folder.join(seed.to_string());
        let file = |source| Error::File { path: folder.clone(), source };
        fs::create_dir_all(&folder).map_err(file)?;
        // The same length whatever the variant: the program's name lies on its stack.
        let (out, order) = (folder.join("program"), folder.join("order"));
        let mut generator = random(seed);
        let mut functions = self.functions.clone();
        let mut placed = self.objects.clone();
        if seed != 0 {
            placed.shuffle(&mut generator);
            functions.shuffle(&mut generator);
        }
        if !functions.is_empty() {
            fs::write(&order, functions.join("\n") + "\n").map_err(file)?;
        }
        let mut words = self.words.clone();
        for (to, from) in self.objects.iter().zip(&placed) {
            words[*to].clone_from(&self.words[*from]);
        }
        for word in &mut words {
            *word = word
                .replace(OUT, &out.to_string_lossy())
                .replace(ORDER, &order.to_string_lossy())
                .replace(SEED, &seed.to_string());
        }
        let mut command = Command::new(&words[0]);
        if let Some(users) = &self.folder {
            // Its inputs are there, and it may still ask for files that nobody wants again.
            command.current_dir(users).env("TMPDIR", &folder);
            confine(&mut command, &folder);
        }
        let output = command
            .args(&words[1..])
            .stdin(Stdio::null())
            .output()
            .map_err(|source| Error::NotStarted { program: words[0].clone(), source })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
            return Err(Error::Usage(format!("`{}` failed: {said}", shell_words::join(&words))));
        }
        match out.is_file() {
            true => Ok(out),
            false => Err(Error::Usage(format!("`{}` made no {}", shell_words::join(&words), out.display()))),
        }
    }
}

/// Names of the functions that objects define, each once.
fn functions(objects: impl Iterator<Item = PathBuf>) -> Result<Vec<String>, Error> {
    let mut names = BTreeSet::new();
    for path in objects {
        let bytes = memlode_files::read(&path, u64::MAX)
            .map_err(|source| Error::File { path: path.clone(), source })?;
        names.extend(defined_functions(&bytes, &path)?);
    }
    Ok(names.into_iter().collect())
}
