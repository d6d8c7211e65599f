//! The list of commands that `memlode --help` shows, by what one wants to do.

use std::fmt::Write;

use clap::Command;

/// The purposes that one has, and the commands that serve each. docs/commands.md has the same order.
pub const GROUPS: [(&str, &[&str]); 7] = [
    ("Build", &["cc", "c++", "fc", "cargo"]),
    ("Find", &["run", "report", "annotate", "html", "sample", "import"]),
    ("Explain", &["sim", "timeline", "alias"]),
    ("Change", &["advise", "whatif", "diff", "budget"]),
    ("Measure", &["bench", "stat", "bias", "validate", "machine"]),
    ("Data", &["record", "serve", "ctl", "replay", "export", "sql", "spark", "results", "dump", "check"]),
    ("Help", &["doctor", "guide", "completions"]),
];

/// Columns before an explanation.
const NAMES: usize = 15;
/// Columns of the list, if nothing else is known.
const WIDTH: usize = 100;

/// Shows the commands of memlode in groups. A command without a group comes last, so that none is
/// lost.
pub fn grouped(memlode: Command) -> Command {
    let width = terminal_size().map_or(WIDTH, |columns| columns.clamp(NAMES + 30, WIDTH));
    let mut list = String::new();
    let shown = |command: &&Command| !command.is_hide_set();
    let others: Vec<&str> = memlode
        .get_subcommands()
        .filter(shown)
        .map(Command::get_name)
        .filter(|name| !GROUPS.iter().any(|(_, names)| names.contains(name)))
        .collect();
    for (heading, names) in GROUPS.into_iter().chain([("Others", &others[..])]) {
        let commands = names.iter().filter_map(|name| memlode.find_subcommand(name)).filter(shown);
        let lines: String = commands.map(|command| entry(command, width)).collect();
        if !lines.is_empty() {
            let _ = write!(list, "\n{heading}:\n{lines}");
        }
    }
    memlode.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{list}\nOptions:\n{{options}}{{after-help}}"
    ))
}

fn terminal_size() -> Option<usize> {
    use std::io::IsTerminal;
    let stdout = std::io::stdout();
    let columns = || Some(usize::from(rustix::termios::tcgetwinsize(&stdout).ok()?.ws_col));
    columns().filter(|columns| stdout.is_terminal() && *columns > 0)
}

/// A command and its description, in lines of this many columns.
fn entry(command: &Command, width: usize) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let (mut lines, mut line) = (String::new(), format!("  {:<1$}", command.get_name(), NAMES - 3));
    for word in about.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(lines, "{line}");
            line = " ".repeat(NAMES - 1);
        }
        line += " ";
        line += word;
    }
    let _ = writeln!(lines, "{line}");
    lines
}
