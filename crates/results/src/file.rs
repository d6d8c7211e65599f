//! The file of an answer.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use memlode_files::Folder;
use memlode_trace::log::{is_sealed, seal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::identity::TraceIdentity;
use crate::{FOLDER, MEMLODE, Question};

/// Value of `format`.
const FORMAT: &str = "memlode result";

/// Version of the file.
const VERSION: u32 = 1;

/// Bytes of the largest file that is written and read.
const MOST: u64 = 256 << 20;

/// Everything in a file but the answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    format: String,
    version: u32,
    pub question: Question,
    pub memlode: String,
    answered_unix_ms: u64,
    pub traces: Vec<TraceIdentity>,
}

impl Head {
    /// The head of a new answer.
    pub fn new(question: Question, traces: Vec<TraceIdentity>) -> Head {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Head {
            format: FORMAT.to_string(),
            version: VERSION,
            question,
            memlode: MEMLODE.to_string(),
            answered_unix_ms: since.as_millis() as u64,
            traces,
        }
    }

    /// When the answer was computed.
    pub fn answered(&self) -> SystemTime {
        UNIX_EPOCH.checked_add(Duration::from_millis(self.answered_unix_ms)).unwrap_or(UNIX_EPOCH)
    }
}

#[derive(Serialize)]
struct Written<'a, A> {
    #[serde(flatten)]
    head: &'a Head,
    answer: &'a A,
}

#[derive(Deserialize)]
struct Answered<A> {
    answer: A,
}

/// A file that has the name of an answer and is not used.
#[derive(Debug)]
pub struct Unusable {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub why: Why,
}

/// The reason why a file is not used.
#[derive(Debug)]
pub enum Why {
    /// It cannot be read.
    Unreadable(io::Error),
    /// Its checksum is wrong, or it is no answer of this command.
    Damaged,
    /// It has the answer to another question.
    OtherQuestion,
    /// It was written by this version of memlode, or by other code of the same version.
    OtherVersion(String),
    /// It is about another trace, or the trace was changed.
    OtherTrace,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not used: it ", self.path.display())?;
        match &self.why {
            Why::Unreadable(error) => write!(f, "cannot be read ({error})"),
            Why::Damaged => f.write_str("is damaged"),
            Why::OtherQuestion => f.write_str("answers another question"),
            Why::OtherVersion(version) => write!(f, "was made by other code, memlode {version}"),
            Why::OtherTrace => f.write_str("is about another trace, or this one was changed"),
        }
    }
}

/// A file of the folder of answers.
pub struct Listed {
    /// Its path.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The question and the time of its answer, or the reason why the file is unusable.
    pub head: Result<(Question, SystemTime), Unusable>,
}

/// Lists the answers beside a trace, the latest first, and then the unusable files.
///
/// # Errors
/// It returns the error of the system, or an error if the folder is a link.
pub fn list(folder: &Folder) -> io::Result<Vec<Listed>> {
    let below = Path::new(FOLDER);
    let mut names = folder.names(Some(below))?;
    names.retain(|name| Path::new(name).extension().is_some_and(|ending| ending == "json"));
    let mut found: Vec<Listed> = names.iter().map(|name| listed(folder, &below.join(name))).collect();
    let answered = |listed: &Listed| listed.head.as_ref().ok().map(|(_, answered)| *answered);
    found.sort_by(|a, b| answered(b).cmp(&answered(a)).then_with(|| a.path.cmp(&b.path)));
    Ok(found)
}

fn listed(folder: &Folder, name: &Path) -> Listed {
    let path = folder.path().join(name);
    let text = read(folder, name).and_then(|text| text.ok_or(Why::Unreadable(ErrorKind::NotFound.into())));
    let bytes = text.as_ref().map_or(0, |text| text.len() as u64);
    let head = text.and_then(|text| head(&text)).and_then(|head| match head.memlode == MEMLODE {
        true => Ok((head.question.clone(), head.answered())),
        false => Err(Why::OtherVersion(head.memlode)),
    });
    Listed { bytes, head: head.map_err(|why| Unusable { path: path.clone(), why }), path }
}

/// The text of a file; `None` if there is none.
pub(crate) fn read(folder: &Folder, name: &Path) -> Result<Option<String>, Why> {
    match folder.read_text(name, MOST) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == ErrorKind::InvalidData => Err(Why::Damaged),
        Err(error) => Err(Why::Unreadable(error)),
    }
}

/// Everything but the answer of an intact file.
pub(crate) fn head(text: &str) -> Result<Head, Why> {
    if !is_sealed(text) {
        return Err(Why::Damaged);
    }
    let head: Head = serde_json::from_str(text).map_err(|_| Why::Damaged)?;
    if head.format != FORMAT {
        return Err(Why::Damaged);
    }
    match head.version {
        VERSION => Ok(head),
        _ => Err(Why::OtherVersion(head.memlode)),
    }
}

/// The answer of a file.
pub(crate) fn answer<A: DeserializeOwned>(text: &str) -> Result<A, Why> {
    serde_json::from_str::<Answered<A>>(text).map(|file| file.answer).map_err(|_| Why::Damaged)
}

/// Writes a file as a whole; its folder is made where it is missing. `Ok(None)` if the file would
/// be larger than files that are read.
pub(crate) fn write(
    folder: &Folder,
    name: &Path,
    head: &Head,
    answer: &impl Serialize,
) -> io::Result<Option<PathBuf>> {
    let text = seal(&serde_json::to_string(&Written { head, answer })?);
    if text.len() as u64 > MOST {
        return Ok(None);
    }
    match folder.make(Path::new(FOLDER)) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => folder.write(name, text.as_bytes())?,
    }
    Ok(Some(folder.path().join(name)))
}
