//! Messages of memlode about itself: errors, notes and progress, all on standard error.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use memlode_layout::EditError;

use crate::door::{Door, Form};

/// Returns whether escape sequences for colours belong on this stream.
pub fn colours(stream: &impl RawStream) -> bool {
    AutoStream::choice(stream) != ColorChoice::Never
}

/// Columns for text that goes to no terminal: a file, a log.
pub const PLAIN_WIDTH: usize = 120;

/// Columns to fill on a stream: its terminal's, or else those of `COLUMNS`.
pub fn width(stream: &(impl IsTerminal + AsFd)) -> usize {
    let terminal = || Some(usize::from(rustix::termios::tcgetwinsize(stream).ok()?.ws_col));
    let wanted = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal().filter(|_| stream.is_terminal()).or_else(wanted).filter(|n| *n > 0).unwrap_or(PLAIN_WIDTH)
}

/// One sentence: the failure, and its cause. If it is an edit that is not understood, its line
/// follows.
pub fn error(error: &anyhow::Error) {
    let picture = error.chain().find_map(|cause| cause.downcast_ref::<EditError>()).map(EditError::picture);
    let whole = sentence(error);
    let Some(picture) = picture else { return say("error: ", AnsiColor::Red, &whole) };
    say("error: ", AnsiColor::Red, whole.strip_suffix(&picture).unwrap_or(&whole).trim_end());
    picture.lines().for_each(line);
}

/// The failure with its causes, as a sentence. Some errors name the system's error themselves,
/// which is then not added again.
fn sentence(error: &anyhow::Error) -> String {
    let mut whole = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if whole.is_empty() {
            whole = cause;
        } else if !whole.ends_with(&cause) {
            whole = format!("{whole}: {cause}");
        }
    }
    whole
}

/// Something the user should know although the command goes on.
pub fn note(text: &str) {
    say("note: ", AnsiColor::Cyan, text);
}

/// Plain words.
pub fn line(text: &str) {
    say("", AnsiColor::White, text);
}

/// Removes the rest of a bar from a terminal.
pub fn clear() {
    let stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = stderr.lock().write_all(b"\r\x1b[K");
    }
}

/// Text of many lines, or JSON.
pub fn block(text: &str, form: Form) -> anyhow::Result<()> {
    Ok(Door::new(std::io::stderr().lock(), form).write_all(text.as_bytes())?)
}

fn say(label: &str, colour: AnsiColor, text: &str) {
    let stderr = std::io::stderr();
    let colours = colours(&stderr);
    let colour = if label.is_empty() || !colours { Style::new() } else { colour.on_default().bold() };
    let text = memlode_report::text::printable(text);
    // Nothing is left to tell when standard error itself is gone.
    let mut door = Door::new(stderr.lock(), Form::Text { colours });
    let _ = writeln!(door, "memlode: {colour}{label}{colour:#}{text}");
}

/// A bar over `total` bytes, chunks or lines, shown only on a terminal and only after a second.
pub fn progress(total: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::hidden());
    let style =
        ProgressStyle::with_template("{msg} {bar:30} {percent:>3}% {eta}").expect("the template is constant");
    bar.set_style(style);
    bar.set_message(what);
    bar
}

/// Moves the bar on; the first call after a second makes it visible.
pub fn advance(bar: &ProgressBar, by: u64) {
    if bar.is_hidden() && bar.elapsed().as_secs() >= 1 && std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
    }
    bar.inc(by);
}

/// A bar over the chunks of a trace, which are counted elsewhere.
pub struct Progress {
    bar: ProgressBar,
    done: AtomicUsize,
}

impl Progress {
    /// Nothing is done yet.
    pub fn of(trace: &memlode_trace::Trace, what: &'static str) -> Progress {
        Progress::new(trace.chunks().len() as u64, what)
    }

    /// Nothing is done yet of this many chunks.
    pub fn new(chunks: u64, what: &'static str) -> Progress {
        Progress { bar: progress(chunks, what), done: AtomicUsize::new(0) }
    }

    /// This many chunks are done.
    pub fn advance_to(&self, done: usize) {
        let before = self.done.swap(done, Ordering::Relaxed);
        advance(&self.bar, done.saturating_sub(before) as u64);
    }

    /// Takes it away, as its end does.
    pub fn finish(self) {}
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
