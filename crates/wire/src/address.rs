//! The address of a receiver, and the streams that lead there.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::fs::Mode;

/// `tcp://host:port` or `unix:///path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Host, a name or an address, and port.
    Tcp(String),
    /// A socket file.
    Unix(PathBuf),
}

/// Not an address.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no address; expected tcp://HOST:PORT or unix:///PATH")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        if let Some(path) = text.strip_prefix("unix://")
            && path.starts_with('/')
        {
            return Ok(Address::Unix(path.into()));
        }
        if let Some(host) = text.strip_prefix("tcp://")
            && let Some((name, port)) = host.rsplit_once(':')
            && !name.is_empty()
            && port.parse::<u16>().is_ok()
        {
            return Ok(Address::Tcp(host.to_owned()));
        }
        Err(AddressError(text.to_owned()))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(host) => write!(f, "tcp://{host}"),
            Address::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

/// A connection of either kind.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Address {
    /// Connects, trying each address of a host for this long.
    pub(crate) fn connect(&self, patience: Duration) -> io::Result<Stream> {
        match self {
            Address::Tcp(host) => {
                let mut last = io::Error::new(ErrorKind::NotFound, "the host has no address");
                for address in host.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, patience) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(Stream::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                ours(&stream)?;
                Ok(Stream::Unix(stream))
            }
        }
    }
}

/// Refuses the process of another user (root excepted) at the other end.
fn ours(stream: &UnixStream) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid == rustix::process::geteuid() || peer.uid.is_root() {
        return Ok(());
    }
    Err(io::Error::new(ErrorKind::PermissionDenied, "the process at the other end belongs to another user"))
}

impl Stream {
    pub fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_write_timeout(Some(timeout)),
            Stream::Unix(stream) => stream.set_write_timeout(Some(timeout)),
        }
    }

    pub fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_read_timeout(Some(timeout)),
            Stream::Unix(stream) => stream.set_read_timeout(Some(timeout)),
        }
    }

    /// Signals that nothing more will be written.
    pub fn end(&self) {
        // Who is gone does not need to be told.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }

    /// Fills `bytes`, or gives up when nothing has come for this long.
    pub fn read_while(&mut self, mut bytes: &mut [u8], silence: Duration) -> io::Result<()> {
        while !bytes.is_empty() {
            let length = self.read_some(bytes, silence)?;
            bytes = &mut bytes[length..];
        }
        Ok(())
    }

    /// Fills `bytes`, however small the pieces are that arrive, or gives up when the time is over.
    pub fn read_by(&mut self, mut bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            let length = self.read_some(bytes, left)?;
            bytes = &mut bytes[length..];
        }
        Ok(())
    }

    /// Reads at least a byte.
    fn read_some(&mut self, bytes: &mut [u8], patience: Duration) -> io::Result<usize> {
        self.set_read_timeout(patience)?;
        match self.read(bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(ErrorKind::TimedOut.into()),
            read => read,
        }
    }

    /// Ends the connection from another thread: readers and writers get an error.
    pub fn breaker(&self) -> io::Result<OwnedFd> {
        match self {
            Stream::Tcp(stream) => stream.as_fd().try_clone_to_owned(),
            Stream::Unix(stream) => stream.as_fd().try_clone_to_owned(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(bytes),
            Stream::Unix(stream) => stream.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An open ear.
pub enum Listener {
    /// On a port.
    Tcp(TcpListener),
    /// On a socket file, removed in the end.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Begins to listen. A socket file belongs to its owner alone; a left-over one is replaced. To
    /// be called before there are other threads: the process's umask changes for a moment.
    pub fn bind(address: &Address) -> io::Result<Listener> {
        match address {
            Address::Tcp(host) => Ok(Listener::Tcp(TcpListener::bind(host.as_str())?)),
            Address::Unix(path) => {
                let listener = match bind_private(path) {
                    Err(error) if error.kind() == ErrorKind::AddrInUse && is_left_over(path) => {
                        std::fs::remove_file(path)?;
                        bind_private(path)
                    }
                    bound => bound,
                };
                Ok(Listener::Unix(listener?, path.clone()))
            }
        }
    }

    /// Returns where it listens: a port that the system chose, too.
    pub fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Listener::Tcp(listener) => Address::Tcp(listener.local_addr()?.to_string()),
            Listener::Unix(_, path) => Address::Unix(path.clone()),
        })
    }

    /// For polling.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(listener, _) => listener.as_fd(),
        }
    }

    /// The next connection, and its sender.
    pub(crate) fn accept(&self) -> io::Result<(Stream, String)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, peer) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok((Stream::Tcp(stream), peer.to_string()))
            }
            Listener::Unix(listener, _) => {
                let (stream, _) = listener.accept()?;
                ours(&stream)?;
                let pid = rustix::net::sockopt::socket_peercred(&stream)?.pid;
                Ok((Stream::Unix(stream), format!("process {}", pid.as_raw_pid())))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let before = rustix::process::umask(Mode::RWXG | Mode::RWXO);
    let listener = UnixListener::bind(path);
    rustix::process::umask(before);
    listener
}

/// Returns whether a path is a socket on which no process listens.
fn is_left_over(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).is_err_and(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let parse = |text: &str| text.parse::<Address>();
        assert_eq!(parse("tcp://localhost:80").unwrap(), Address::Tcp("localhost:80".into()));
        assert_eq!(parse("tcp://[::1]:80").unwrap().to_string(), "tcp://[::1]:80");
        assert_eq!(parse("unix:///run/x").unwrap(), Address::Unix("/run/x".into()));
        for wrong in
            ["", "tcp://", "tcp://host", "tcp://:1", "tcp://h:99999", "unix://x", "/run/x", "udp://h:1"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
