//! A program that is stopped, looked at and continued.

use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use crate::Error;
use crate::process::{AddressLayout, Launch, StopFlag};

/// General registers, as the kernel hands them over.
pub type Registers = libc::user_regs_struct;

/// The instruction that stops a program.
const BREAKPOINT: u8 = 0xcc;
/// The debug register that controls the others, and its value if the first one has the address of
/// an instruction.
const CONTROL: usize = 7;
const ENABLED: u64 = 1;
/// `syscall`, and a breakpoint behind it.
const SYSCALL: [u8; 3] = [0x0f, 0x05, BREAKPOINT];
/// Time between two looks whether to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// A program under our control. It and its children are ended when this is dropped, or when memlode ends in any way.
pub struct Tracee {
    pid: Pid,
    command: String,
    memory: File,
    stop: Arc<StopFlag>,
    deadline: Instant,
    /// Ends the program when the measurement is stopped, or the time is over.
    watcher: Option<(Sender<()>, JoinHandle<()>)>,
    ended: bool,
}

impl Tracee {
    /// Starts a program; it has not run any of its own instructions yet.
    ///
    /// # Errors
    /// If it cannot be started, or the system does not let one process look into another.
    pub fn start(
        launch: &Launch,
        layout: AddressLayout,
        stop: &Arc<StopFlag>,
        longest: Duration,
    ) -> Result<Tracee, Error> {
        let mut command = launch.command(layout)?;
        // SAFETY: one system call, which touches no memory.
        unsafe {
            command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        };
        let child = command.spawn().map_err(|source| Error::NotStarted {
            program: launch.words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default(),
            source,
        })?;
        let pid = Pid::from_child(&child);
        let memory = format!("/proc/{}/mem", pid.as_raw_nonzero());
        let system = |doing| move |source| Error::System { doing, source };
        let memory = File::options()
            .read(true)
            .write(true)
            .open(memory)
            .map_err(system("cannot look into the program that was started"))?;
        let deadline = Instant::now() + longest;
        let mut tracee = Tracee {
            pid,
            command: launch.text(),
            memory,
            stop: Arc::clone(stop),
            deadline,
            watcher: None,
            ended: false,
        };
        let pidfd = pidfd_open(pid, PidfdFlags::empty())
            .map_err(|error| Error::System { doing: "cannot watch the program", source: error.into() })?;
        let (done, wait) = channel();
        let stop = Arc::clone(stop);
        let watch = move || {
            while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(GLANCE) {
                if stop.load(Ordering::Relaxed) || Instant::now() > deadline {
                    let _ = pidfd_send_signal(&pidfd, Signal::KILL);
                    return;
                }
            }
        };
        tracee.watcher = Some((done, std::thread::spawn(watch)));
        tracee.wait(None)?;
        let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACEEXEC;
        tracee.request(libc::PTRACE_SETOPTIONS, 0, options as usize)?;
        Ok(tracee)
    }

    /// The file of the program that runs.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn file(&self) -> Result<PathBuf, Error> {
        let link = format!("/proc/{}/exe", self.pid.as_raw_nonzero());
        std::fs::read_link(&link).map_err(|source| Error::File { path: link.into(), source })
    }

    /// Returns where the kernel put the program's first instruction.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn entry(&self) -> Result<u64, Error> {
        let path = format!("/proc/{}/auxv", self.pid.as_raw_nonzero());
        let bytes = std::fs::read(&path).map_err(|source| Error::File { path: path.into(), source })?;
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        let mut pairs = bytes.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..])));
        let entry = pairs.find(|(key, _)| *key == libc::AT_ENTRY).map(|(_, value)| value);
        entry.ok_or_else(|| Error::Usage(format!("the kernel does not say where `{}` begins", self.command)))
    }

    /// Returns the mappings: start, end, and the kernel's name.
    pub fn mappings(&self) -> Vec<(u64, u64, String)> {
        let text = std::fs::read_to_string(format!("/proc/{}/maps", self.pid.as_raw_nonzero()));
        let line = |line: &str| {
            let mut words = line.split_whitespace();
            let (from, to) = words.next()?.split_once('-')?;
            let name = words.nth(4).unwrap_or_default().to_owned();
            Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?, name))
        };
        text.unwrap_or_default().lines().filter_map(line).collect()
    }

    /// Fills the buffer from the program's memory, as far as it is mapped; returns the bytes read.
    pub fn read_some(&self, address: u64, to: &mut [u8]) -> usize {
        self.memory.read_at(to, address).unwrap_or(0)
    }

    /// Fills the buffer from the program's memory.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Error> {
        let doing = "cannot read memory of the program";
        self.memory.read_exact_at(to, address).map_err(|source| Error::System { doing, source })
    }

    /// Writes to the program's memory, code too.
    ///
    /// # Errors
    /// If there is none.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        let doing = "cannot write memory of the program";
        self.memory.write_all_at(bytes, address).map_err(|source| Error::System { doing, source })
    }

    /// Registers of the program, which is stopped.
    ///
    /// # Errors
    /// If it is not.
    pub fn registers(&self) -> Result<Registers, Error> {
        // SAFETY: plain numbers, and zeros are valid ones.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        self.request(libc::PTRACE_GETREGS, 0, ptr::from_mut(&mut registers) as usize)?;
        Ok(registers)
    }

    /// Sets them.
    ///
    /// # Errors
    /// If the program is not stopped.
    pub fn set_registers(&self, registers: &Registers) -> Result<(), Error> {
        self.request(libc::PTRACE_SETREGS, 0, ptr::from_ref(registers) as usize)
    }

    /// Floating-point and vector registers.
    ///
    /// # Errors
    /// If the program is not stopped.
    pub fn vectors(&self) -> Result<libc::user_fpregs_struct, Error> {
        // SAFETY: plain numbers, and zeros are valid ones.
        let mut vectors: libc::user_fpregs_struct = unsafe { std::mem::zeroed() };
        self.request(libc::PTRACE_GETFPREGS, 0, ptr::from_mut(&mut vectors) as usize)?;
        Ok(vectors)
    }

    /// Runs until the first thread comes to the instruction at this address. `what` names it in
    /// errors. The breakpoint is in the thread's debug registers: other threads and children pass
    /// it.
    ///
    /// # Errors
    /// If the program ends before it comes there.
    pub fn run_to(&mut self, address: u64, what: &str) -> Result<Registers, Error> {
        self.set_debug_register(0, address)?;
        self.set_debug_register(CONTROL, ENABLED)?;
        self.resume(Some(what))?;
        self.set_debug_register(CONTROL, 0)?;
        let registers = self.registers()?;
        if registers.rip != address {
            return Err(Error::Usage(format!("`{}` stopped before it called {what}", self.command)));
        }
        Ok(registers)
    }

    fn set_debug_register(&self, number: usize, value: u64) -> Result<(), Error> {
        let place = offset_of!(libc::user, u_debugreg) + number * size_of::<u64>();
        self.request(libc::PTRACE_POKEUSER, place, value as usize)
    }

    /// Runs until a breakpoint. `towards` names the place in errors.
    ///
    /// # Errors
    /// If the program ends before.
    pub fn resume(&mut self, towards: Option<&str>) -> Result<(), Error> {
        self.request(libc::PTRACE_CONT, 0, 0)?;
        self.wait(towards)
    }

    /// Does one instruction.
    ///
    /// # Errors
    /// If it ends the program.
    pub fn step(&mut self) -> Result<(), Error> {
        self.request(libc::PTRACE_SINGLESTEP, 0, 0)?;
        self.wait(None)
    }

    /// Makes a system call in the program; returns its result. Registers are restored.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn system_call(&mut self, number: i64, arguments: [u64; 6]) -> Result<u64, Error> {
        let before = self.registers()?;
        let mut code = [0; SYSCALL.len()];
        self.read(before.rip, &mut code)?;
        self.write(before.rip, &SYSCALL)?;
        let mut registers = before;
        registers.rax = number as u64;
        registers.orig_rax = u64::MAX;
        [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] = arguments;
        self.set_registers(&registers)?;
        self.resume(None)?;
        let answer = self.registers()?.rax;
        self.write(before.rip, &code)?;
        self.set_registers(&before)?;
        match answer as i64 {
            -4095..0 => Err(Error::System {
                doing: "cannot get memory in the program",
                source: std::io::Error::from_raw_os_error(-(answer as i64) as i32),
            }),
            _ => Ok(answer),
        }
    }

    /// Waits for a stop that is ours; the program's signals go to it.
    fn wait(&mut self, towards: Option<&str>) -> Result<(), Error> {
        loop {
            let mut status = 0;
            // SAFETY: points to a variable that lives here.
            let got = unsafe { libc::waitpid(self.raw(), &mut status, libc::__WALL) };
            if got != self.raw() {
                let source = std::io::Error::last_os_error();
                if source.kind() == std::io::ErrorKind::Interrupted {
                    continue;
                }
                return Err(Error::System { doing: "cannot wait for the program", source });
            }
            if !libc::WIFSTOPPED(status) {
                self.ended = true;
                return Err(self.ending(status, towards));
            }
            if status >> 16 == libc::PTRACE_EVENT_EXEC {
                return Err(Error::Usage(format!(
                    "`{}` runs another program: give that one to memlode",
                    self.command
                )));
            }
            match libc::WSTOPSIG(status) {
                libc::SIGTRAP => return Ok(()),
                signal => self.request(libc::PTRACE_CONT, 0, signal as usize)?,
            }
        }
    }

    fn ending(&self, status: i32, towards: Option<&str>) -> Error {
        if self.stop.load(Ordering::Relaxed) {
            return Error::Interrupted;
        }
        if Instant::now() > self.deadline {
            return Error::Usage(format!(
                "`{}` had not {} when the time was over: give it less to do, or a longer --time-limit",
                self.command,
                towards.map_or("ended".into(), |what| format!("called {what}"))
            ));
        }
        let how = match (libc::WIFEXITED(status), towards) {
            (true, Some(what)) => {
                return Error::Usage(format!(
                    "`{}` ended and never called {what}: neither its other threads nor its children count",
                    self.command
                ));
            }
            (true, None) => format!("exited with status {}", libc::WEXITSTATUS(status)),
            (false, _) => format!("was ended by signal {}", libc::WTERMSIG(status)),
        };
        Error::Failed { command: self.command.clone(), how }
    }

    fn request(&self, request: libc::c_uint, address: usize, data: usize) -> Result<(), Error> {
        // SAFETY: what `data` points to, if it does, is a variable of the caller of the size that the request has.
        match unsafe { libc::ptrace(request, self.raw(), address, data) } {
            -1 => {
                let source = std::io::Error::last_os_error();
                // Somebody ended it meanwhile.
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                Err(Error::System { doing: "cannot control the program", source })
            }
            _ => Ok(()),
        }
    }

    fn raw(&self) -> libc::pid_t {
        self.pid.as_raw_nonzero().get()
    }
}

impl Drop for Tracee {
    fn drop(&mut self) {
        if let Some((done, thread)) = self.watcher.take() {
            drop(done);
            let _ = thread.join();
        }
        // The group is the program's own.
        let _ = kill_process_group(self.pid, Signal::KILL);
        let mut status = 0;
        while !self.ended {
            // SAFETY: points to a variable that lives here.
            let got = unsafe { libc::waitpid(self.raw(), &mut status, libc::__WALL) };
            self.ended = got != self.raw() || !libc::WIFSTOPPED(status);
        }
    }
}
