//! The collector's Unix socket: its place, who may connect, and the form of messages.

use std::ffi::OsString;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use memlode_trace::format::{Reply, Request, magic, version};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    Shutdown, SocketAddrUnix, SocketFlags, SocketType, UCred,
};
use rustix::process::{Pid, Uid};

use crate::error::Error;
use crate::private::PrivateDirectory;

/// A listening socket in a directory of its own that only this user can enter, and one of the same
/// number in the abstract name space, for programs that do not get there. They go with the value.
pub struct Socket {
    fd: OwnedFd,
    /// `None` where the system does not have such a name space.
    anywhere: Option<OwnedFd>,
    path: PathBuf,
    _directory: PrivateDirectory,
}

impl Socket {
    /// Opens a socket under `$XDG_RUNTIME_DIR`, or else under the directory for temporary files.
    pub fn open() -> Result<Socket, Error> {
        let parents = [std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from), Some(std::env::temp_dir())];
        let mut refused = None;
        for parent in parents.into_iter().flatten().filter(|parent| parent.is_absolute()) {
            match Socket::open_under(&parent) {
                Ok(socket) => return Ok(socket),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused
            .unwrap_or_else(|| Error::Socket { path: std::env::temp_dir(), source: Errno::NOENT.into() }))
    }

    fn open_under(parent: &Path) -> Result<Socket, Error> {
        let directory = PrivateDirectory::create_in(parent)
            .map_err(|source| Error::Socket { path: parent.to_owned(), source })?;
        let path = directory.path().join(format!("collector-{}", std::process::id()));
        let name = format!("memlode-collector-{}", std::process::id());
        let anywhere = SocketAddrUnix::new_abstract_name(name.as_bytes()).and_then(|name| listen(&name)).ok();
        match SocketAddrUnix::new(&path).and_then(|path| listen(&path)) {
            Ok(fd) => Ok(Socket { fd, anywhere, path, _directory: directory }),
            Err(error) => Err(Error::Socket { path, source: error.into() }),
        }
    }

    /// Returns the value of `MEMLODE_COLLECTOR`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// For polling: readable when a program wants to speak, here or anywhere.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.fd.as_fd(), self.anywhere.as_ref().unwrap_or(&self.fd).as_fd()]
    }

    /// Accepts the next program; `None` when none waits. `is_ours` decides which programs may
    /// connect. Programs of other users may not, unless this user is root: their memory would be
    /// open to this user. They do not trust us either (`record/src/address.c`), and are `refused`.
    pub fn accept(&self, is_ours: impl Fn(Pid) -> bool, refused: impl Fn(Pid, Uid)) -> Option<Connection> {
        let user = rustix::process::geteuid();
        let may = |peer: &UCred| {
            let may = is_within_reach(peer.uid, user);
            if !may {
                refused(peer.pid, peer.uid);
            }
            may
        };
        let near = accept(&self.fd, may);
        near.or_else(|| accept(self.anywhere.as_ref()?, |peer| is_ours(peer.pid) && may(peer)))
    }

    /// Removes the socket: programs that look for the collector go on without it.
    pub fn retire(&self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = self.anywhere.as_ref().map(|fd| rustix::net::shutdown(fd, Shutdown::Both));
    }
}

/// Returns whether a user may look into a program that runs as `peer`.
fn is_within_reach(peer: Uid, user: Uid) -> bool {
    peer == user || user.is_root()
}

/// A socket that listens at an address.
fn listen(address: &SocketAddrUnix) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    rustix::net::bind(&fd, address)?;
    rustix::net::listen(&fd, 1024)?;
    Ok(fd)
}

/// The next program that wants to speak, and may.
fn accept(socket: &OwnedFd, may: impl Fn(&UCred) -> bool) -> Option<Connection> {
    loop {
        match rustix::net::accept_with(socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(fd) => {
                let Ok(peer) = rustix::net::sockopt::socket_peercred(&fd) else { continue };
                if may(&peer) {
                    return Some(Connection { fd, pid: peer.pid });
                }
            }
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(Errno::MFILE | Errno::NFILE) => {
                // Too many at once: who waits is heard when others have gone.
                std::thread::sleep(std::time::Duration::from_millis(10));
                return None;
            }
            Err(_) => return None,
        }
    }
}

/// One program with one request.
pub struct Connection {
    fd: OwnedFd,
    /// The process, by the kernel's word.
    pub pid: Pid,
}

/// A request, taken apart and checked.
pub struct Message {
    /// `message.*`
    pub kind: u16,
    /// The sender's pid as it sees itself; it differs from the kernel's in another pid namespace.
    pub pid: u32,
    /// Index of the process, from the reply to its hello.
    pub process: u32,
    /// Run-time address minus link-time address.
    pub load_bias: u64,
    /// Empty when the image has none.
    pub build_id: Vec<u8>,
    /// Empty for the main program.
    pub path: PathBuf,
}

/// The result of reading a connection.
pub enum Received {
    /// Nothing yet.
    Pending,
    /// A well-formed request.
    Message(Box<Message>),
    /// A request of another protocol version.
    OtherVersion,
    /// The sender went away or spoke nonsense.
    Closed,
}

impl Connection {
    /// For polling.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Reads the request without waiting.
    pub fn receive(&self) -> Received {
        let mut bytes = [0u8; Request::BYTES];
        let mut control = RecvAncillaryBuffer::new(&mut []);
        let length = loop {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            match rustix::net::recvmsg(&self.fd, &mut parts, &mut control, RecvFlags::DONTWAIT) {
                Ok(message) => break message.bytes,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Received::Pending,
                Err(_) => return Received::Closed,
            }
        };
        let request = Request::from_bytes(&bytes);
        if length < 8 || request.magic != magic::MESSAGE {
            return Received::Closed;
        }
        if request.version != version::RING {
            return Received::OtherVersion;
        }
        let build_id = request.build_id.get(..request.build_id_length as usize);
        let path = request.path.get(..request.path_length as usize);
        match (length == Request::BYTES, build_id, path) {
            (true, Some(build_id), Some(path)) => Received::Message(Box::new(Message {
                kind: request.kind,
                pid: request.pid,
                process: request.process,
                load_bias: request.load_bias,
                build_id: build_id.to_vec(),
                path: OsString::from_vec(path.to_vec()).into(),
            })),
            _ => Received::Closed,
        }
    }

    /// Replies, which ends the connection.
    pub fn reply(self, status: u16, process: u32, memory: Option<BorrowedFd<'_>>) {
        let reply =
            Reply { magic: magic::MESSAGE, version: version::RING, status, process, ..Default::default() };
        let bytes = reply.to_bytes();
        let fds: Vec<BorrowedFd<'_>> = memory.into_iter().collect();
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&fds));
        }
        // A program that no longer listens needs no answer.
        let _ = rustix::net::sendmsg(&self.fd, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn lives_in_a_private_directory_and_leaves_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let socket = Socket::open_under(parent.path()).unwrap();
        let directory = socket.path().parent().unwrap().to_owned();
        assert_eq!(std::fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
        assert!(socket.path().as_os_str().as_bytes().len() < 108);
        drop(socket);
        assert!(!directory.exists());
    }

    #[test]
    fn a_path_that_is_too_long_is_an_error() {
        let parent = tempfile::tempdir().unwrap();
        let long = parent.path().join("x".repeat(200));
        std::fs::create_dir(&long).unwrap();
        assert!(Socket::open_under(&long).is_err());
        assert_eq!(std::fs::read_dir(&long).unwrap().count(), 0);
    }
}
