//! The sender's side: a store whose files are at the other end of a socket.

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use memlode_trace::error::Error;
use memlode_trace::format::{WireAnswer, WireFrame, WireReply, limit, magic, version, wire, wire_status};
use memlode_trace::write::{Store, TraceFile};

use crate::address::{Address, Stream};
use crate::token::{Nonces, Side, Token, nonce};
use crate::{ALIVE, HANDSHAKE, SILENCE};

/// Sends a trace. A call returns when the bytes are on their way: while the receiver is busy, it
/// waits. Nothing is kept to be sent later.
pub struct RemoteStore {
    link: Arc<Link>,
    beat: Option<JoinHandle<()>>,
}

const NOT_SERVE: &str = "what answers there is not `memlode serve`";

struct Link {
    address: String,
    line: Mutex<Line>,
    /// Rung when the store is dropped.
    over: Condvar,
}

struct Line {
    stream: Stream,
    /// Why nothing is sent any more.
    broken: Option<String>,
    last: Instant,
    over: bool,
}

impl RemoteStore {
    /// Connects, shows that it knows the token, and sees that the receiver does.
    pub fn connect(address: &Address, token: &Token) -> Result<RemoteStore, Error> {
        let at = address.to_string();
        let failed =
            |error: io::Error| Error::Remote { address: at.clone(), what: sentence(&error, HANDSHAKE) };
        let refused = |what: String| Error::Remote { address: at.clone(), what };
        let mut stream = address.connect(HANDSHAKE).map_err(failed)?;
        stream.set_write_timeout(HANDSHAKE).map_err(failed)?;
        let deadline = Instant::now() + HANDSHAKE;
        let (status, challenge) = reply(&mut stream, deadline).map_err(refused)?;
        let receiver = match (status, <[u8; 32]>::try_from(&challenge[..])) {
            (wire_status::CHALLENGE, Ok(nonce)) => nonce,
            (wire_status::CHALLENGE, Err(_)) => return Err(refused(NOT_SERVE.to_owned())),
            _ => return Err(refused(refusal(status, &challenge))),
        };
        let nonces = Nonces { receiver, sender: nonce().map_err(failed)? };
        let answer = WireAnswer {
            magic: magic::WIRE,
            version: version::WIRE,
            nonce: nonces.sender,
            proof: token.proof(Side::Sender, &nonces),
            ..Default::default()
        };
        stream.write_all(&answer.to_bytes()).map_err(failed)?;
        match reply(&mut stream, deadline).map_err(refused)? {
            (wire_status::OK, proof) if token.accepts(Side::Receiver, &nonces, &proof) => {}
            (wire_status::OK, _) => {
                return Err(refused(
                    "what listens there does not know the token: it is not your `memlode serve`, and got nothing"
                        .to_owned(),
                ));
            }
            (status, words) => return Err(refused(refusal(status, &words))),
        }
        stream.set_write_timeout(SILENCE).map_err(failed)?;

        let line = Line { stream, broken: None, last: Instant::now(), over: false };
        let link = Arc::new(Link { address: at.clone(), line: Mutex::new(line), over: Condvar::new() });
        let beating = link.clone();
        let beat = std::thread::Builder::new()
            .name("memlode-alive".into())
            .spawn(move || beating.beat())
            .map_err(failed)?;
        Ok(RemoteStore { link, beat: Some(beat) })
    }
}

impl Store for RemoteStore {
    fn append(&mut self, file: TraceFile, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let (kind, a, b) = match file {
            TraceFile::Events => (wire::APPEND_EVENTS, 0, 0),
            TraceFile::Index => (wire::APPEND_INDEX, 0, 0),
            TraceFile::Thread { process, thread } => (wire::APPEND, process, thread),
            TraceFile::Manifest | TraceFile::Module(_) => unreachable!("these are put, not appended to"),
        };
        self.link.pieces(WireFrame { kind, a, b, at, ..Default::default() }, bytes)
    }

    fn put(&mut self, file: TraceFile, bytes: &[u8]) -> Result<(), Error> {
        let (kind, a) = match file {
            TraceFile::Manifest => (wire::PUT_MANIFEST, 0),
            TraceFile::Module(module) => (wire::PUT_MODULE, module),
            TraceFile::Events | TraceFile::Index | TraceFile::Thread { .. } => {
                unreachable!("these are appended to, not put")
            }
        };
        self.link.pieces(WireFrame { kind, a, flags: wire::LAST_PIECE, ..Default::default() }, bytes)
    }

    fn finish(&mut self) -> Result<(), Error> {
        let mut line = self.link.line();
        self.link.send(&mut line, WireFrame { kind: wire::FINISH, ..Default::default() }, &[])?;
        match reply(&mut line.stream, Instant::now() + SILENCE) {
            Ok((wire_status::OK, _)) => Ok(()),
            Ok((status, words)) => Err(self.link.broken(&mut line, refusal(status, &words))),
            Err(what) => Err(self.link.broken(&mut line, what)),
        }
    }
}

impl Drop for RemoteStore {
    fn drop(&mut self) {
        self.link.line().over = true;
        self.link.over.notify_all();
        if let Some(beat) = self.beat.take() {
            let _ = beat.join();
        }
    }
}

impl Link {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends `bytes` in frames like the first; only the last one has the flags.
    fn pieces(&self, first: WireFrame, bytes: &[u8]) -> Result<(), Error> {
        let mut line = self.line();
        let mut rest = bytes;
        let mut at = first.at;
        loop {
            let (piece, behind) = rest.split_at(rest.len().min(limit::WIRE_PAYLOAD_BYTES as usize));
            let flags = if behind.is_empty() { first.flags } else { 0 };
            self.send(&mut line, WireFrame { flags, at, ..first }, piece)?;
            (rest, at) = (behind, at + piece.len() as u64);
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    fn send(&self, line: &mut Line, frame: WireFrame, payload: &[u8]) -> Result<(), Error> {
        if let Some(what) = &line.broken {
            return Err(Error::Remote { address: self.address.clone(), what: what.clone() });
        }
        let frame = WireFrame { bytes: payload.len() as u32, ..frame };
        let sent = line.stream.write_all(&frame.to_bytes()).and_then(|()| line.stream.write_all(payload));
        line.last = Instant::now();
        sent.map_err(|error| {
            // A receiver that refuses says why before it closes.
            let said = reply(&mut line.stream, Instant::now() + Duration::from_secs(1));
            let what = match said {
                Ok((status, words)) => refusal(status, &words),
                Err(_) => sentence(&error, SILENCE),
            };
            self.broken(line, what)
        })
    }

    fn broken(&self, line: &mut Line, what: String) -> Error {
        line.broken.get_or_insert(what.clone());
        Error::Remote { address: self.address.clone(), what }
    }

    /// Shows the receiver that a silent sender is alive.
    fn beat(&self) {
        let mut line = self.line();
        while !line.over {
            (line, _) = self.over.wait_timeout(line, ALIVE).unwrap_or_else(PoisonError::into_inner);
            if !line.over && line.broken.is_none() && line.last.elapsed() >= ALIVE {
                // The next call of the store tells the failure.
                let _ = self.send(&mut line, WireFrame { kind: wire::ALIVE, ..Default::default() }, &[]);
            }
        }
    }
}

/// A status and its payload, or a sentence.
fn reply(stream: &mut Stream, deadline: Instant) -> Result<(u16, Vec<u8>), String> {
    let told = |error: io::Error| sentence(&error, deadline.saturating_duration_since(Instant::now()));
    let mut bytes = [0; WireReply::BYTES];
    stream.read_by(&mut bytes, deadline).map_err(told)?;
    let reply = WireReply::from_bytes(&bytes);
    if reply.magic != magic::WIRE {
        return Err(NOT_SERVE.to_owned());
    }
    if reply.version != version::WIRE {
        return Err(format!(
            "the receiver speaks version {} of the protocol, this memlode version {}",
            reply.version,
            version::WIRE
        ));
    }
    if u64::from(reply.bytes) > limit::WIRE_SENTENCE_BYTES {
        return Err("the receiver's answer is longer than any can be".to_owned());
    }
    let mut payload = vec![0; reply.bytes as usize];
    stream.read_by(&mut payload, deadline).map_err(told)?;
    Ok((reply.status, payload))
}

fn refusal(status: u16, words: &[u8]) -> String {
    match status {
        wire_status::REFUSED => format!("the receiver refuses: {}", String::from_utf8_lossy(words)),
        _ => format!("the receiver answers with status {status}, which was not expected"),
    }
}

fn sentence(error: &io::Error, patience: Duration) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "nobody listens there: start `memlode serve` first".to_owned(),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            format!("the receiver neither takes nor says anything (waited {} s)", patience.as_secs().max(1))
        }
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            "the receiver has gone away".to_owned()
        }
        _ => error.to_string(),
    }
}
