//! The thread that listens: messages from programs, processes that end.

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memlode_trace::format::message;
use memlode_trace::log::Event;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Uid};

use crate::clock;
use crate::output::count;
use crate::process::Process;
use crate::reader::Tools;
use crate::socket::{Connection, Message, Received, Socket};
use crate::worker::Shared;

/// Time between two looks at threads.
const PAUSE: Duration = Duration::from_millis(50);
/// A program that connects sends its message within this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Index of the first connection among the polled descriptors: behind `stop` and the sockets.
const FIRST_CONNECTION: usize = 3;
/// Processes between a program and us, at most.
const MOST_ANCESTORS: usize = 64;

/// Listens until `stop` becomes readable. The socket goes away with it.
pub fn listen(shared: &Shared, socket: &Socket, stop: &OwnedFd) {
    let mut tools = shared.tools();
    let mut connections: Vec<(Connection, Instant)> = Vec::new();
    loop {
        let processes = shared.processes();
        let ready: Vec<bool> = {
            let fds = [stop.as_fd()].into_iter().chain(socket.fds());
            let fds = fds.chain(connections.iter().map(|(connection, _)| connection.fd()));
            // A pidfd stays readable: whoever is known to be over would keep us awake.
            let living = processes.iter().filter(|process| !process.is_over()).map(|process| process.pidfd());
            let mut polled: Vec<PollFd<'_>> =
                fds.chain(living).map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            let pause = Timespec { tv_sec: 0, tv_nsec: PAUSE.as_nanos() as _ };
            if rustix::event::poll(&mut polled, Some(&pause)).is_err() {
                continue; // interrupted
            }
            polled.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        if ready[0] {
            return;
        }
        for (process, _) in processes
            .iter()
            .filter(|process| !process.is_over())
            .zip(&ready[FIRST_CONNECTION + connections.len()..])
            .filter(|(_, ready)| **ready)
        {
            process.mark_gone();
            shared.wake();
        }
        let waiting = std::mem::take(&mut connections);
        for ((connection, since), ready) in waiting.into_iter().zip(&ready[FIRST_CONNECTION..]) {
            match if *ready { connection.receive() } else { Received::Pending } {
                Received::Pending if since.elapsed() < PATIENCE => connections.push((connection, since)),
                Received::Pending | Received::Closed => {}
                Received::OtherVersion => {
                    shared.output.note(format!(
                        "process {} was built with another version of memlode and is not recorded; rebuild it",
                        connection.pid.as_raw_pid()
                    ));
                    connection.reply(message::STATUS_VERSION, 0, None);
                }
                Received::Message(message) => answer(shared, connection, &message, &mut tools),
            }
        }
        if ready[1] || ready[2] {
            let is_ours = |pid| descends_from_us(pid, &processes);
            let refused = |pid: Pid, uid: Uid| {
                let (pid, uid) = (pid.as_raw_pid(), uid.as_raw());
                shared.output.note(format!(
                    "process {pid} runs as another user (user id {uid}) and is not recorded; root may record it"
                ));
            };
            let new = std::iter::from_fn(|| socket.accept(is_ours, refused));
            connections.extend(new.map(|new| (new, Instant::now())));
        }
        shared.notice_dead_threads(PAUSE);
    }
}

fn answer(shared: &Shared, connection: Connection, message: &Message, tools: &mut Tools) {
    if message.kind == message::HELLO {
        return hello(shared, connection, message);
    }
    let processes = shared.processes();
    let sender = processes.iter().find(|process| process.index == message.process);
    let status = match (sender, message.kind) {
        // Programs speak for themselves only.
        (Some(process), message::MODULE_LOAD) if process.pid == connection.pid => {
            process.load_image(message, &shared.output, tools);
            message::STATUS_OK
        }
        (Some(process), message::MODULE_UNLOAD) if process.pid == connection.pid => {
            process.unload_image(message, &shared.output, tools);
            message::STATUS_OK
        }
        _ => message::STATUS_REFUSED,
    };
    connection.reply(status, message.process, None);
}

fn hello(shared: &Shared, connection: Connection, message: &Message) {
    let pid = connection.pid;
    let known = shared.processes();
    let same = known.iter().filter(|process| process.pid == pid && !process.is_over());
    if let Some(process) = same.clone().find(|process| process.is_still_mapped()) {
        // Another copy of the runtime, which dlmopen makes: its threads are those of the first.
        process.memory.expect_copies();
        return connection.reply(message::STATUS_OK, process.index, Some(process.memory.fd()));
    }
    // The same process once more: it has become another program.
    same.for_each(|process| process.mark_over());
    let Some(index) = shared.next_process() else {
        count(&shared.output.counters.refused_processes, 1);
        return connection.reply(message::STATUS_REFUSED, 0, None);
    };
    let command = command_of(pid);
    let process = match Process::new(index, message, &connection, &command, shared) {
        Ok(process) => Arc::new(process),
        Err(error) => {
            let why = match error {
                Errno::FBIG => {
                    "`ulimit -f` allows no file as large as the memory that it would share".to_owned()
                }
                error => error.to_string(),
            };
            shared.output.note(format!("process {} is not recorded: {why}", pid.as_raw_pid()));
            return connection.reply(message::STATUS_REFUSED, 0, None);
        }
    };
    count(&shared.output.counters.processes, 1);
    let parent = parent_of(pid);
    shared.output.event(&Event::ProcessStart {
        process: index,
        pid: pid.as_raw_pid() as u32,
        parent: known.iter().find(|process| Some(process.pid) == parent).map(|process| process.index),
        command,
        stamp: clock::stamp(),
    });
    shared.add(process.clone());
    connection.reply(message::STATUS_OK, index, Some(process.memory.fd()));
}

fn proc_file(pid: Pid, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/{name}", pid.as_raw_pid()))
}

fn command_of(pid: Pid) -> Vec<String> {
    let bytes = std::fs::read(proc_file(pid, "cmdline")).unwrap_or_default();
    let text = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    text.split(|&byte| byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

/// Returns whether a process is a descendant of this one, or of one that is recorded: its ancestors
/// may be gone.
fn descends_from_us(pid: Pid, known: &[Arc<Process>]) -> bool {
    let own = rustix::process::getpid();
    std::iter::successors(Some(pid), |pid| parent_of(*pid))
        .take(MOST_ANCESTORS)
        .any(|pid| pid == own || known.iter().any(|process| process.pid == pid))
}

fn parent_of(pid: Pid) -> Option<Pid> {
    let stat = std::fs::read_to_string(proc_file(pid, "stat")).ok()?;
    // The name is in parentheses and may hold anything: "pid (name) state ppid ...".
    let after = &stat[stat.rfind(')')? + 1..];
    Pid::from_raw(after.split_whitespace().nth(1)?.parse().ok()?)
}
