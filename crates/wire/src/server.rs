//! The receiver's side.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use memlode_trace::format::{WireAnswer, WireFrame, WireReply, limit, magic, version, wire, wire_status};
use memlode_trace::write::{Store, TraceFile};
use rustc_hash::FxHashMap;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;

use crate::address::{Listener, Stream};
use crate::token::{Nonces, Side, Token, nonce};
use crate::{HANDSHAKE, SILENCE};

/// Limits that a receiver grants.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Senders at a time.
    pub clients: usize,
    /// Bytes of one trace.
    pub bytes: u64,
    /// A sender that is silent for this long is dead.
    pub silence: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { clients: 16, bytes: 64 << 30, silence: SILENCE }
    }
}

/// Events, for the caller to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// A sender that knows the token.
    Began {
        /// Who.
        peer: String,
    },
    /// All of its trace is stored.
    Completed {
        /// Who.
        peer: String,
        /// Bytes of its files, manifests that were replaced included.
        bytes: u64,
    },
    /// A connection that brought no whole trace, and why. The received part is stored.
    Failed {
        /// Who.
        peer: String,
        /// A sentence.
        why: String,
    },
}

/// Receives traces.
pub struct Server {
    listener: Listener,
    rules: Arc<Rules>,
}

struct Rules {
    token: Token,
    limits: Limits,
    clients: AtomicUsize,
    strangers: Strangers,
}

/// Makes a store for the trace of a new sender, or returns the reason why not.
pub trait Open: Fn(&str) -> Result<Box<dyn Store>, String> + Send + Sync {}
impl<F: Fn(&str) -> Result<Box<dyn Store>, String> + Send + Sync> Open for F {}

/// Receives events.
pub trait Tell: Fn(Told) + Send + Sync {}
impl<F: Fn(Told) + Send + Sync> Tell for F {}

impl Server {
    /// Receives traces that come to `listener` from senders that know `token`.
    pub fn new(listener: Listener, token: Token, limits: Limits) -> Server {
        let clients = AtomicUsize::new(0);
        Server {
            listener,
            rules: Arc::new(Rules { token, limits, clients, strangers: Strangers::default() }),
        }
    }

    /// Receives one trace; returns whether it came whole. Connections that do not begin one are
    /// reported and forgotten; those that come when one has begun are refused.
    ///
    /// # Errors
    /// When the system accepts no connection.
    pub fn serve_one(&self, open: Arc<dyn Open>, told: Arc<dyn Tell>) -> io::Result<bool> {
        let done = Arc::new(Done { bell: eventfd(0, EventfdFlags::CLOEXEC)?, whole: AtomicBool::new(false) });
        let begun = Arc::new(AtomicBool::new(false));
        let first = move |peer: &str| match begun.swap(true, Ordering::Relaxed) {
            true => Err("another sender was first, and only one is waited for".to_owned()),
            false => open(peer).inspect_err(|_| begun.store(false, Ordering::Relaxed)),
        };
        let first: Arc<dyn Open> = Arc::new(first);
        loop {
            let mut polled =
                [done.bell.as_fd(), self.listener.fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            match poll(&mut polled, None) {
                Ok(_) if !polled[0].revents().is_empty() => return Ok(done.whole.load(Ordering::Relaxed)),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if !polled[1].revents().is_empty() {
                let done = done.clone();
                self.greet_next(&first, &told, move |whole| {
                    done.whole.store(whole, Ordering::Relaxed);
                    let _ = rustix::io::write(&done.bell, &1u64.to_ne_bytes());
                })?;
            }
        }
    }

    /// Receives for ever, with a thread for each sender.
    ///
    /// # Errors
    /// When the system accepts no more connections.
    pub fn serve(&self, open: Arc<dyn Open>, told: Arc<dyn Tell>) -> io::Result<()> {
        loop {
            self.greet_next(&open, &told, |_| {})?;
        }
    }

    /// Takes the next connection, and lets it prove on its own thread that it knows the token. A
    /// trace that begins is received there; then `over` is called with whether it came whole.
    fn greet_next(
        &self,
        open: &Arc<dyn Open>,
        told: &Arc<dyn Tell>,
        over: impl FnOnce(bool) + Send + 'static,
    ) -> io::Result<()> {
        let (stream, peer) = match self.listener.accept() {
            Ok(accepted) => accepted,
            // Of the one connection, or of a moment without descriptors: not of the listener.
            Err(error) if error.kind() != ErrorKind::InvalidInput => {
                told(Told::Failed { peer: "a connection".to_owned(), why: error.to_string() });
                std::thread::sleep(Duration::from_millis(50));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let Ok(known) = stream.breaker().map(|breaker| self.rules.strangers.enter(breaker)) else {
            return Ok(());
        };
        let (open, told, rules) = (open.clone(), told.clone(), self.rules.clone());
        let body = move || {
            let mut session = Session::new(stream, peer, rules.clone());
            // Leaves also when a panic unwinds.
            let stranger = Stranger { strangers: &rules.strangers, number: known };
            let greeted = session.greet();
            drop(stranger);
            let Some(_place) = session.begin(greeted, &*open, &*told) else { return };
            over(session.receive(&*told));
        };
        // Without a thread, the connection ends with what was to go there.
        if std::thread::Builder::new().name("memlode-receive".into()).spawn(body).is_err() {
            self.rules.strangers.leave(known);
        }
        Ok(())
    }
}

/// The end of the one trace that is waited for.
struct Done {
    bell: OwnedFd,
    whole: AtomicBool,
}

/// Connections that have not proved yet that they know the token. They take no place of senders
/// that have. When there are too many, the one that has been silent for the longest time is closed:
/// a sender that knows the token replies at once.
#[derive(Default)]
struct Strangers(Mutex<(u64, VecDeque<(u64, OwnedFd)>)>);

/// Strangers at a time.
const STRANGERS: usize = 64;

impl Strangers {
    fn lock(&self) -> MutexGuard<'_, (u64, VecDeque<(u64, OwnedFd)>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, breaker: OwnedFd) -> u64 {
        let mut known = self.lock();
        let (next, waiting) = &mut *known;
        *next += 1;
        waiting.push_back((*next, breaker));
        if waiting.len() > STRANGERS
            && let Some((_, oldest)) = waiting.pop_front()
        {
            let _ = rustix::net::shutdown(&oldest, rustix::net::Shutdown::Both);
        }
        *next
    }

    fn leave(&self, number: u64) {
        self.lock().1.retain(|(known, _)| *known != number);
    }
}

struct Stranger<'a> {
    strangers: &'a Strangers,
    number: u64,
}

impl Drop for Stranger<'_> {
    fn drop(&mut self) {
        self.strangers.leave(self.number);
    }
}

/// One of the places of senders.
struct Place(Arc<Rules>);

impl Place {
    fn take(rules: &Arc<Rules>) -> Result<Place, String> {
        let taken = rules.clients.fetch_add(1, Ordering::Relaxed);
        let place = Place(rules.clone());
        match taken < rules.limits.clients {
            true => Ok(place),
            false => Err(format!("{taken} senders are here already, as many as are allowed")),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One connection.
struct Session {
    stream: Stream,
    peer: String,
    rules: Arc<Rules>,
    store: Option<Box<dyn Store>>,
    /// Bytes of each file that is appended to.
    lengths: FxHashMap<TraceFile, u64>,
    modules: u32,
    /// The pieces so far of a file that is put.
    pieces: Vec<u8>,
    bytes: u64,
}

impl Session {
    fn new(stream: Stream, peer: String, rules: Arc<Rules>) -> Session {
        Session {
            stream,
            peer,
            rules,
            store: None,
            lengths: FxHashMap::default(),
            modules: 0,
            pieces: Vec::new(),
            bytes: 0,
        }
    }

    /// Opens the store for a sender that has shown that it knows the token, and shows the same. Its
    /// place, if there is a trace to receive.
    fn begin(&mut self, greeted: Result<Nonces, String>, open: &dyn Open, told: &dyn Tell) -> Option<Place> {
        let peer = self.peer.clone();
        let ready = greeted.and_then(|nonces| {
            let place = Place::take(&self.rules)?;
            Ok((nonces, place, open(&peer)?))
        });
        match ready {
            Ok((nonces, place, store)) => {
                self.store = Some(store);
                told(Told::Began { peer: peer.clone() });
                let proof = self.rules.token.proof(Side::Receiver, &nonces);
                // If it is gone, its first frame does not come, which is told as that.
                let _ = self.say(wire_status::OK, &proof);
                Some(place)
            }
            Err(why) => {
                self.refuse(&why);
                told(Told::Failed { peer, why });
                None
            }
        }
    }

    /// Requests the proof.
    fn greet(&mut self) -> Result<Nonces, String> {
        let text = |error: io::Error| error.to_string();
        self.stream.set_write_timeout(HANDSHAKE).map_err(text)?;
        let receiver = nonce().map_err(text)?;
        self.say(wire_status::CHALLENGE, &receiver).map_err(text)?;
        let deadline = Instant::now() + HANDSHAKE;
        let mut bytes = [0; WireAnswer::BYTES];
        // The first words say how many more there are.
        let (head, rest) = bytes.split_at_mut(8);
        let silent = |_| "no answer to the challenge".to_owned();
        self.stream.read_by(head, deadline).map_err(silent)?;
        let ours = WireAnswer { magic: magic::WIRE, version: version::WIRE, ..Default::default() };
        if head[..6] == ours.to_bytes()[..6] {
            self.stream.read_by(rest, deadline).map_err(silent)?;
        }
        let answer = WireAnswer::from_bytes(&bytes);
        if answer.magic != magic::WIRE {
            return Err("what it says is not memlode's protocol".to_owned());
        }
        if answer.version != version::WIRE {
            let (theirs, ours) = (answer.version, version::WIRE);
            return Err(format!("it speaks version {theirs} of the protocol, this memlode version {ours}"));
        }
        let nonces = Nonces { receiver, sender: answer.nonce };
        match self.rules.token.accepts(Side::Sender, &nonces, &answer.proof) {
            true => Ok(nonces),
            false => Err("the token is not the right one (MEMLODE_TOKEN or --token-file)".to_owned()),
        }
    }

    /// Stores what comes. Returns whether it was complete.
    fn receive(&mut self, told: &dyn Tell) -> bool {
        let peer = self.peer.clone();
        let outcome = loop {
            match self.frame() {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(why) => break Err(why),
            }
        };
        match outcome {
            Ok(()) => {
                let _ = self.say(wire_status::OK, &[]);
                told(Told::Completed { peer, bytes: self.bytes });
                true
            }
            Err(why) => {
                self.refuse(&why);
                told(Told::Failed { peer, why });
                false
            }
        }
    }

    /// Takes one frame; false at the end.
    fn frame(&mut self) -> Result<bool, String> {
        let silence = self.rules.limits.silence;
        let lost = |error: io::Error| match error.kind() {
            ErrorKind::UnexpectedEof => "the sender went away in the middle of its trace".to_owned(),
            ErrorKind::TimedOut => format!("the sender has said nothing for {} s", silence.as_secs_f32()),
            _ => format!("the connection was lost: {error}"),
        };
        let mut header = [0; WireFrame::BYTES];
        self.stream.read_while(&mut header, silence).map_err(lost)?;
        let frame = WireFrame::from_bytes(&header);
        if u64::from(frame.bytes) > limit::WIRE_PAYLOAD_BYTES {
            return Err(format!("a frame of {} bytes is longer than any can be", frame.bytes));
        }
        let mut payload = vec![0; frame.bytes as usize];
        self.stream.read_while(&mut payload, silence).map_err(lost)?;
        self.bytes += payload.len() as u64;
        if self.bytes > self.rules.limits.bytes {
            return Err(format!(
                "the trace is larger than the {} bytes that are allowed",
                self.rules.limits.bytes
            ));
        }
        match frame.kind {
            wire::APPEND => {
                self.append(TraceFile::Thread { process: frame.a, thread: frame.b }, frame.at, &payload)?;
            }
            wire::APPEND_EVENTS => self.append(TraceFile::Events, frame.at, &payload)?,
            wire::APPEND_INDEX => self.append(TraceFile::Index, frame.at, &payload)?,
            wire::PUT_MODULE => self.put(TraceFile::Module(frame.a), &frame, &payload)?,
            wire::PUT_MANIFEST => self.put(TraceFile::Manifest, &frame, &payload)?,
            wire::ALIVE => {}
            wire::FINISH => {
                self.store().finish().map_err(|error| error.to_string())?;
                return Ok(false);
            }
            kind => return Err(format!("a frame of kind {kind}, which does not exist")),
        }
        Ok(true)
    }

    fn store(&mut self) -> &mut dyn Store {
        &mut **self.store.as_mut().expect("a session receives after it has begun")
    }

    fn append(&mut self, file: TraceFile, at: u64, bytes: &[u8]) -> Result<(), String> {
        let files = self.lengths.len() as u64;
        let length = match self.lengths.get(&file) {
            Some(&length) => length,
            None if files >= limit::WIRE_FILES => return Err("more files than a trace can have".to_owned()),
            None => 0,
        };
        if at != length {
            return Err(format!(
                "{} has {length} bytes, the next are for position {at}",
                file.path().display()
            ));
        }
        self.store().append(file, at, bytes).map_err(|error| error.to_string())?;
        self.lengths.insert(file, length + bytes.len() as u64);
        Ok(())
    }

    fn put(&mut self, file: TraceFile, frame: &WireFrame, bytes: &[u8]) -> Result<(), String> {
        let name = || file.path().display().to_string();
        if frame.at != self.pieces.len() as u64 {
            return Err(format!("{}: a piece for position {} is not the next", name(), frame.at));
        }
        if self.pieces.len() as u64 + bytes.len() as u64 > limit::WIRE_PUT_BYTES {
            return Err(format!("{} is larger than any can be", name()));
        }
        self.pieces.extend_from_slice(bytes);
        if frame.flags & wire::LAST_PIECE == 0 {
            return Ok(());
        }
        if let TraceFile::Module(module) = file {
            if module != self.modules || u64::from(module) >= limit::WIRE_FILES {
                return Err(format!("{} is not the next module", name()));
            }
            self.modules += 1;
        }
        let whole = std::mem::take(&mut self.pieces);
        self.store().put(file, &whole).map_err(|error| error.to_string())
    }

    fn say(&mut self, status: u16, payload: &[u8]) -> io::Result<()> {
        let reply = WireReply {
            magic: magic::WIRE,
            version: version::WIRE,
            status,
            bytes: payload.len() as u32,
            ..Default::default()
        };
        self.stream.write_all(&[&reply.to_bytes()[..], payload].concat())
    }

    /// Sends the reason for the end. Bytes on their way are read for a moment: closed with unread
    /// bytes, a TCP connection would lose the message.
    fn refuse(&mut self, why: &str) {
        let why = &why.as_bytes()[..why.len().min(limit::WIRE_SENTENCE_BYTES as usize)];
        if self.stream.set_write_timeout(Duration::from_secs(1)).is_err()
            || self.say(wire_status::REFUSED, why).is_err()
        {
            return;
        }
        self.stream.end();
        let deadline = Instant::now() + Duration::from_secs(2);
        let mut unread = [0; 4096];
        while Instant::now() < deadline && self.stream.set_read_timeout(Duration::from_millis(500)).is_ok() {
            match self.stream.read(&mut unread) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }
}
