//! Sender and receiver against each other, and the receiver against everybody else.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use memlode_trace::error::Error;
use memlode_trace::format::{WireAnswer, WireFrame, WireReply, limit, magic, version, wire, wire_status};
use memlode_trace::write::{DirectoryStore, Store, TraceFile};
use memlode_wire::{Address, Limits, Listener, RemoteStore, Server, Token, Told};

const THREAD: TraceFile = TraceFile::Thread { process: 0, thread: 3 };

/// A receiver on a thread of its own, which lives as long as the test.
struct Receiving {
    address: Address,
    token: Token,
    told: Receiver<Told>,
}

fn receive(at: &str, limits: Limits, open: impl Fn() -> Box<dyn Store> + Send + Sync + 'static) -> Receiving {
    let listener = Listener::bind(&at.parse().unwrap()).unwrap();
    let (address, token) = (listener.address().unwrap(), Token::generate().unwrap());
    let server = Server::new(listener, token.clone(), limits);
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    std::thread::spawn(move || {
        server.serve(
            Arc::new(move |_: &str| Ok(open())),
            Arc::new(move |what| {
                let _ = tell.lock().unwrap().send(what);
            }),
        )
    });
    Receiving { address, token, told }
}

fn receive_into(directory: &Path) -> Receiving {
    let directory = directory.to_owned();
    let open = move || -> Box<dyn Store> { Box::new(DirectoryStore::create(&directory, false).unwrap()) };
    receive("tcp://127.0.0.1:0", Limits::default(), open)
}

impl Receiving {
    fn connect(&self) -> RemoteStore {
        RemoteStore::connect(&self.address, &self.token).unwrap()
    }

    /// A connection, and the receiver's challenge.
    fn stranger(&self) -> (TcpStream, Vec<u8>) {
        let Address::Tcp(host) = &self.address else { panic!("TCP only") };
        let mut stream = TcpStream::connect(host).unwrap();
        let (status, nonce) = said(&mut stream);
        assert_eq!(status, wire_status::CHALLENGE);
        (stream, nonce)
    }

    /// A connection after a right proof.
    fn sender(&self) -> TcpStream {
        let (mut stream, nonce) = self.stranger();
        // The proof is a sender's secret: take it from a sender that asks this one question.
        stream.write_all(&answer_of(&self.token, &nonce).to_bytes()).unwrap();
        let (status, proof) = said(&mut stream);
        assert_eq!((status, proof.len()), (wire_status::OK, 32));
        stream
    }

    /// Sends these bytes instead of a sender, after a right proof if requested; returns the
    /// receiver's message.
    fn hear(&self, answers: bool, bytes: &[u8]) -> String {
        let mut stream = if answers { self.sender() } else { self.stranger().0 };
        stream.write_all(bytes).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let (status, sentence) = said(&mut stream);
        assert_eq!(status, wire_status::REFUSED);
        String::from_utf8(sentence).unwrap()
    }
}

fn said(stream: &mut TcpStream) -> (u16, Vec<u8>) {
    let mut bytes = [0; WireReply::BYTES];
    stream.read_exact(&mut bytes).unwrap();
    let reply = WireReply::from_bytes(&bytes);
    assert_eq!((reply.magic, reply.version), (magic::WIRE, version::WIRE));
    let mut payload = vec![0; reply.bytes as usize];
    stream.read_exact(&mut payload).unwrap();
    (reply.status, payload)
}

/// Returns a sender's proof of the token over a nonce.
fn answer_of(token: &Token, nonce: &[u8]) -> WireAnswer {
    let (sender, mut stream) = impostor(token);
    let answer = challenge(&mut stream, nonce);
    drop(stream);
    assert!(sender.join().unwrap().is_err());
    answer
}

/// Returns the result of a sender that takes us for its receiver, and our end of its connection.
fn impostor(token: &Token) -> (std::thread::JoinHandle<Result<(), String>>, TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap().to_string());
    let token = token.clone();
    let send = move || -> Result<(), String> {
        let mut store = RemoteStore::connect(&address, &token).map_err(|error| error.to_string())?;
        store.put(TraceFile::Manifest, b"secret").map_err(|error| error.to_string())
    };
    let sender = std::thread::spawn(send);
    (sender, listener.accept().unwrap().0)
}

/// Requests a proof over a nonce.
fn challenge(stream: &mut TcpStream, nonce: &[u8]) -> WireAnswer {
    say(stream, wire_status::CHALLENGE, nonce);
    let mut answer = [0; WireAnswer::BYTES];
    stream.read_exact(&mut answer).unwrap();
    WireAnswer::from_bytes(&answer)
}

fn say(stream: &mut TcpStream, status: u16, payload: &[u8]) {
    let reply = WireReply {
        magic: magic::WIRE,
        version: version::WIRE,
        status,
        bytes: payload.len() as u32,
        ..Default::default()
    };
    stream.write_all(&[&reply.to_bytes()[..], payload].concat()).unwrap();
}

fn frame(frame: WireFrame, payload: &[u8]) -> Vec<u8> {
    [&frame.to_bytes()[..], payload].concat()
}

/// Contents of all files below a directory.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let inner = files(&path).into_iter();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            found.extend(inner.map(|(file, bytes)| (format!("{name}/{file}"), bytes)));
        } else {
            found.insert(
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                std::fs::read(&path).unwrap(),
            );
        }
    }
    found
}

/// A trace of sorts: every kind of file, pieces smaller and larger than a frame.
fn fill(store: &mut dyn Store) -> Result<(), Error> {
    let bytes = |seed: u64, length: usize| -> Vec<u8> {
        (0..length as u64).map(|i| ((i * 0x9e37_79b9 + seed) >> 7) as u8).collect()
    };
    store.put(TraceFile::Manifest, b"begun")?;
    store.append(TraceFile::Events, 0, b"")?;
    store.append(TraceFile::Events, 0, b"one\n")?;
    store.put(TraceFile::Module(0), &bytes(1, 3 << 20))?;
    store.put(TraceFile::Module(1), b"")?;
    let mut at = 0;
    for length in [1, 70_000, (2 << 20) + 17] {
        store.append(THREAD, at, &bytes(at, length))?;
        at += length as u64;
    }
    store.close(THREAD);
    store.append(TraceFile::Thread { process: 7, thread: 70_000 }, 0, b"other")?;
    store.append(TraceFile::Events, 4, b"two\n")?;
    store.put(TraceFile::Manifest, b"complete")?;
    store.finish()
}

#[test]
fn a_socket_leaves_the_files_that_a_directory_gets() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join("here");
    fill(&mut DirectoryStore::create(&here, false).unwrap()).unwrap();
    let socket = format!("unix://{}", folder.path().join("socket").display());
    for (name, at) in [("tcp", "tcp://127.0.0.1:0"), ("unix", socket.as_str())] {
        let there = folder.path().join(name);
        let copy = there.clone();
        let receiving =
            receive(at, Limits::default(), move || Box::new(DirectoryStore::create(&copy, false).unwrap()));
        fill(&mut receiving.connect()).unwrap();
        assert!(matches!(receiving.told.recv().unwrap(), Told::Began { .. }));
        assert!(matches!(receiving.told.recv().unwrap(), Told::Completed { .. }));
        assert_eq!(files(&there).keys().collect::<Vec<_>>(), files(&here).keys().collect::<Vec<_>>());
        assert!(files(&there) == files(&here), "{name}: contents differ");
    }
    // Files are their owner's alone.
    for file in ["tcp", "here/events.ndjson", "socket"] {
        let mode = std::fs::metadata(folder.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
}

#[test]
fn only_who_knows_the_token_may_send() {
    let folder = tempfile::tempdir().unwrap();
    let receiving = receive_into(&folder.path().join("t"));
    for wrong in [Token::none(), Token::new(b"guess").unwrap()] {
        let error = RemoteStore::connect(&receiving.address, &wrong).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("the token is not the right one"), "{error}");
    }
    assert!(!folder.path().join("t").exists(), "strangers leave nothing behind");
    fill(&mut receiving.connect()).unwrap();
}

/// Takes nothing until it is opened.
struct Gate(Arc<Mutex<()>>, Sender<u64>);

impl Store for Gate {
    fn append(&mut self, _: TraceFile, _: u64, bytes: &[u8]) -> Result<(), Error> {
        let _open = self.0.lock().unwrap();
        self.1.send(bytes.len() as u64).unwrap();
        Ok(())
    }

    fn put(&mut self, _: TraceFile, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn a_slow_receiver_slows_the_sender_and_loses_nothing() {
    const MEGABYTES: u64 = 64;
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let (tell, stored) = channel();
    let (inner, tell) = (gate.clone(), Mutex::new(tell));
    let receiving = receive("tcp://127.0.0.1:0", Limits::default(), move || {
        Box::new(Gate(inner.clone(), tell.lock().unwrap().clone()))
    });
    let mut store = receiving.connect();
    let sender = std::thread::spawn(move || {
        for at in 0..MEGABYTES {
            store.append(THREAD, at << 20, &vec![7; 1 << 20]).unwrap();
        }
        store.finish().unwrap();
    });
    // Far more than sockets hold: it cannot end before the gate opens.
    std::thread::sleep(Duration::from_millis(100));
    assert!(!sender.is_finished());
    drop(closed);
    sender.join().unwrap();
    assert_eq!(stored.try_iter().sum::<u64>(), MEGABYTES << 20);
}

#[test]
fn nonsense_is_refused_with_a_reason_and_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let number = Mutex::new(0);
    let parent = folder.path().to_owned();
    let receiving = receive("tcp://127.0.0.1:0", Limits::default(), move || {
        let mut number = number.lock().unwrap();
        *number += 1;
        Box::new(DirectoryStore::create(&parent.join(number.to_string()), false).unwrap())
    });
    let kind = |kind| WireFrame { kind, ..Default::default() };
    let piece = |kind, bytes| WireFrame { kind, bytes, ..Default::default() };
    let cases: Vec<(bool, Vec<u8>, &str)> = vec![
        (false, b"GET / HTTP/1.1\r\nHost: somebody who is lost\r\n\r\n".to_vec(), "not memlode's protocol"),
        (false, b"short".to_vec(), "no answer"),
        (
            false,
            WireAnswer { magic: magic::WIRE, version: 9, ..Default::default() }.to_bytes().to_vec(),
            "version 9",
        ),
        (true, frame(kind(77), b""), "kind 77"),
        (true, vec![0xff; 24], "longer than any can be"),
        (true, frame(piece(wire::APPEND, u32::MAX), b""), "longer than any can be"),
        (true, frame(piece(wire::APPEND, 5), b"abc"), "went away"),
        (true, vec![1; 3], "went away"),
        (true, frame(WireFrame { at: 1, ..piece(wire::APPEND, 1) }, b"x"), "has 0 bytes"),
        (true, frame(WireFrame { at: u64::MAX, ..piece(wire::APPEND_EVENTS, 1) }, b"x"), "position"),
        (true, frame(WireFrame { at: 9, ..piece(wire::PUT_MANIFEST, 1) }, b"x"), "not the next"),
        (
            true,
            frame(WireFrame { a: 5, flags: wire::LAST_PIECE, ..piece(wire::PUT_MODULE, 1) }, b"x"),
            "not the next module",
        ),
    ];
    for (answers, bytes, expected) in cases {
        let sentence = receiving.hear(answers, &bytes);
        assert!(sentence.contains(expected), "{expected}: {sentence}");
    }
    fill(&mut receiving.connect()).unwrap();
    assert!(receiving.told.iter().any(|what| matches!(what, Told::Completed { .. })));
}

#[test]
fn a_file_in_pieces_has_an_end() {
    let receiving = receive_into(&tempfile::tempdir().unwrap().path().join("t"));
    let bytes = limit::WIRE_PAYLOAD_BYTES as u32;
    let payload = vec![0; bytes as usize];
    let mut all = Vec::new();
    for at in (0..=limit::WIRE_PUT_BYTES).step_by(bytes as usize) {
        all.extend(frame(WireFrame { kind: wire::PUT_MANIFEST, bytes, at, ..Default::default() }, &payload));
    }
    let sentence = receiving.hear(true, &all);
    assert!(sentence.contains("manifest.json is larger than any can be"), "{sentence}");
}

#[test]
fn limits_are_told_to_the_sender() {
    let open = || -> Box<dyn Store> {
        let folder = tempfile::tempdir().unwrap().keep();
        Box::new(DirectoryStore::create(&folder, false).unwrap().limited_to(1 << 20))
    };
    let append = |receiving: &Receiving| {
        let mut store = receiving.connect();
        let mut at = 0;
        let failed = loop {
            match store.append(THREAD, at, &[1; 50_000]) {
                Ok(()) => at += 50_000,
                Err(error) => break error.to_string(),
            }
        };
        // Nothing is tried again.
        assert_eq!(store.put(TraceFile::Manifest, b"").unwrap_err().to_string(), failed);
        failed
    };
    let receiving = receive("tcp://127.0.0.1:0", Limits::default(), open);
    let failed = append(&receiving);
    assert!(failed.contains("the receiver refuses") && failed.contains("may hold 1048576 bytes"), "{failed}");

    let receiving = receive("tcp://127.0.0.1:0", Limits { bytes: 300_000, ..Limits::default() }, open);
    let failed = append(&receiving);
    assert!(failed.contains("larger than the 300000 bytes"), "{failed}");
}

#[test]
fn there_are_only_so_many_senders_at_a_time() {
    let open = || -> Box<dyn Store> { Box::new(Gate(Arc::default(), channel().0)) };
    let receiving = receive("tcp://127.0.0.1:0", Limits { clients: 1, ..Limits::default() }, open);
    let mut first = receiving.connect();
    let error = RemoteStore::connect(&receiving.address, &receiving.token).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("as many as are allowed"), "{error}");
    first.finish().unwrap();
}

#[test]
fn a_sender_that_falls_silent_is_given_up() {
    let silence = Duration::from_secs(2);
    let open = || -> Box<dyn Store> { Box::new(Gate(Arc::default(), channel().0)) };
    let receiving = receive("tcp://127.0.0.1:0", Limits { silence, ..Limits::default() }, open);
    let _silent = receiving.connect();
    let failed = receiving.told.iter().find_map(|what| match what {
        Told::Failed { why, .. } => Some(why),
        _ => None,
    });
    assert!(failed.unwrap().contains("has said nothing"));
}

#[test]
fn a_slow_sender_is_not_a_silent_one() {
    // On a busy machine a pause may become longer than what is borne: then it says nothing, and the next is longer.
    let is_borne = (1..5).map(|seconds| Duration::from_secs(2 * seconds)).find_map(slow_sender);
    assert_eq!(is_borne, Some(wire_status::OK));
}

/// Returns the receiver's reply to a frame that takes longer than the allowed silence, without a
/// pause of that length; or `None` if there was such a pause.
fn slow_sender(silence: Duration) -> Option<u16> {
    let open = || -> Box<dyn Store> { Box::new(Gate(Arc::default(), channel().0)) };
    let receiving = receive("tcp://127.0.0.1:0", Limits { silence, ..Limits::default() }, open);
    let mut stream = receiving.sender();
    let mut longest = Duration::ZERO;
    for piece in frame(WireFrame { kind: wire::FINISH, ..Default::default() }, &[]).chunks(3) {
        let before = std::time::Instant::now();
        std::thread::sleep(silence / 5);
        let written = stream.write_all(piece);
        longest = longest.max(before.elapsed());
        if longest > silence / 2 {
            return None;
        }
        written.unwrap();
    }
    Some(said(&mut stream).0)
}

#[test]
fn an_impostor_gets_no_trace() {
    let token = Token::generate().unwrap();
    // One that guesses, one that sends the sender's own proof back, and one that lets the real receiver prove it to somebody else.
    let receiving = receive_into(&tempfile::tempdir().unwrap().path().join("t"));
    for trick in 0..4 {
        let (sender, mut stream) = impostor(if trick == 3 { &receiving.token } else { &token });
        let proof = match trick {
            0 => challenge(&mut stream, &[7; 32]).proof.map(|byte| byte ^ 1).to_vec(),
            1 => challenge(&mut stream, &[7; 32]).proof.to_vec(),
            2 => {
                challenge(&mut stream, &[7; 32]);
                Vec::new()
            }
            _ => {
                let (mut real, nonce) = receiving.stranger();
                challenge(&mut stream, &nonce);
                let other = answer_of(&receiving.token, &nonce);
                real.write_all(&other.to_bytes()).unwrap();
                said(&mut real).1
            }
        };
        say(&mut stream, wire_status::OK, &proof);
        let error = sender.join().unwrap().unwrap_err();
        assert!(error.contains("does not know the token"), "{trick}: {error}");
        let mut got = Vec::new();
        // It may have closed with our words unread.
        let _ = stream.read_to_end(&mut got);
        assert!(got.is_empty(), "{trick}: {} bytes of the trace", got.len());
    }
}

#[test]
fn silent_strangers_keep_nobody_out() {
    let folder = tempfile::tempdir().unwrap();
    let receiving = receive_into(&folder.path().join("t"));
    // More than there are places, and more than are borne at a time: the first of them go.
    let mut silent: Vec<TcpStream> = (0..80).map(|_| receiving.stranger().0).collect();
    let began = std::time::Instant::now();
    fill(&mut receiving.connect()).unwrap();
    assert!(began.elapsed() < Duration::from_secs(8), "it had to wait for them");
    let mut rest = Vec::new();
    let _ = silent[0].read_to_end(&mut rest);
    assert!(receiving.told.iter().any(|what| matches!(what, Told::Completed { .. })));
}

#[test]
fn one_trace_is_received_in_spite_of_strangers() {
    let listener = Listener::bind(&"tcp://127.0.0.1:0".parse().unwrap()).unwrap();
    let (address, token) = (listener.address().unwrap(), Token::generate().unwrap());
    let server = Server::new(listener, token.clone(), Limits::default());
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("t");
    let receiver = std::thread::spawn(move || {
        let open = move |_: &str| -> Result<Box<dyn Store>, String> {
            Ok(Box::new(DirectoryStore::create(&directory, false).map_err(|error| error.to_string())?))
        };
        server.serve_one(Arc::new(open), Arc::new(|_| {})).unwrap()
    });
    let Address::Tcp(host) = &address else { panic!("TCP") };
    let _silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(host).unwrap()).collect();
    assert!(RemoteStore::connect(&address, &Token::new(b"guess").unwrap()).is_err());
    let began = std::time::Instant::now();
    let mut first = RemoteStore::connect(&address, &token).unwrap();
    let second = RemoteStore::connect(&address, &token).map(|_| ()).unwrap_err().to_string();
    assert!(second.contains("another sender was first"), "{second}");
    fill(&mut first).unwrap();
    assert!(receiver.join().unwrap(), "it came whole");
    assert!(began.elapsed() < Duration::from_secs(8), "it had to wait for strangers");
}

#[test]
fn nobody_there_is_a_sentence() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap().to_string());
    drop(listener);
    let error = RemoteStore::connect(&address, &Token::none()).map(|_| ()).unwrap_err().to_string();
    assert!(
        error.starts_with(&address.to_string()) && error.contains("start `memlode serve` first"),
        "{error}"
    );
}

#[test]
fn a_socket_file_is_replaced_only_if_nobody_listens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let address = Address::Unix(path.clone());
    let first = Listener::bind(&address).unwrap();
    assert!(Listener::bind(&address).is_err(), "somebody listens");
    // As a killed receiver leaves it.
    std::mem::forget(first);
    assert!(Listener::bind(&address).is_err(), "its descriptor is open still");
    std::fs::remove_file(&path).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(Listener::bind(&address).unwrap());
    assert!(!path.exists());
    std::fs::write(&path, "a file").unwrap();
    assert!(Listener::bind(&address).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a file");
}
