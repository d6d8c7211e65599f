//! `memlode serve`: receives traces that others record.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use memlode_trace::write::{DirectoryStore, Store};
use memlode_wire::{Address, Limits, Listener, Server, Token, Told};

use crate::args::numbers;
use crate::destination;
use crate::status::{FAILED, OK};
use crate::term;

/// Receive traces through a socket and write them as `record` would
///
/// Senders run `memlode record --to ADDRESS`. The first line of output is the address; without a token of yours, the
/// second is one made for the occasion.
#[derive(Debug, Parser)]
#[command(after_help = "\
Only this machine can connect unless --listen says otherwise. Who connects proves that it knows the token, which itself
is never sent; a trace is sent as it is, so across a network that you do not trust, listen on this machine and let ssh
forward. A Unix socket needs no token: it serves its owner alone.

Exit status: 0 success, 1 it cannot listen, or with --once the trace did not arrive whole, 2 wrong usage.")]
pub struct Args {
    /// Directory for the traces, in which each gets a directory of its own: 0001, 0002, …
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
    /// tcp://HOST:PORT (port 0: any that is free) or unix:///PATH
    #[arg(long, value_name = "ADDRESS", default_value = "tcp://127.0.0.1:7867")]
    listen: Address,
    /// File with the token that senders have to know (also the variable MEMLODE_TOKEN)
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Receive one trace, write it to DIR itself, and end
    #[arg(long)]
    once: bool,
    /// Senders at a time
    #[arg(long, value_name = "N", default_value = "16", value_parser = numbers::small_count)]
    clients: usize,
    /// Bytes that one trace may have, with k, M, G or T
    #[arg(long, value_name = "BYTES", default_value = "64G", value_parser = numbers::bytes)]
    limit: u64,
    /// Seconds without a word after which a sender is given up
    #[arg(long, value_name = "S", default_value_t = memlode_wire::SILENCE.as_secs(), value_parser = clap::value_parser!(u64).range(1..=86_400))]
    silence: u64,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let known = destination::token(args.token_file.as_deref())?;
    let listener =
        Listener::bind(&args.listen).with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = listener.address().context("the socket has no address")?;
    let mut lines = format!("listening on {address}\n");
    let token = match (known, &address) {
        (Some(token), _) => token,
        (None, Address::Unix(_)) => Token::none(),
        (None, Address::Tcp(_)) => {
            let token = Token::generate().context("the system gives no random numbers")?;
            lines += &format!("token {}\n", token.reveal());
            token
        }
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(lines.as_bytes())?;
    stdout.flush()?;
    drop(stdout);

    let limits =
        Limits { clients: args.clients, bytes: args.limit, silence: Duration::from_secs(args.silence) };
    let server = Server::new(listener, token, limits);
    let parent = args.output.clone();
    if args.once {
        let open = move |_: &str| stored(&parent);
        let whole = server.serve_one(Arc::new(open), Arc::new(say)).context("cannot receive")?;
        return Ok(ExitCode::from(if whole { OK } else { FAILED }));
    }
    let open = move |_: &str| numbered(&parent);
    server.serve(Arc::new(open), Arc::new(say)).context("cannot receive any more")?;
    Ok(ExitCode::from(OK))
}

fn stored(directory: &Path) -> Result<Box<dyn Store>, String> {
    let store = DirectoryStore::create(directory, false).map_err(|error| error.to_string())?;
    Ok(Box::new(store))
}

/// A new directory below `parent`: several senders, and several receivers, each get one of their own.
fn numbered(parent: &Path) -> Result<Box<dyn Store>, String> {
    for number in 1..=u32::MAX {
        let directory = parent.join(format!("{number:04}"));
        if let Some(store) = DirectoryStore::create_new(&directory).map_err(|error| error.to_string())? {
            term::line(&format!("a trace begins in {}", directory.display()));
            return Ok(Box::new(store));
        }
    }
    Err(format!("{} is full", parent.display()))
}

fn say(what: Told) {
    match what {
        Told::Began { peer } => term::line(&format!("{peer} sends a trace")),
        Told::Completed { peer, bytes } => {
            let bytes = memlode_report::text::bytes(bytes);
            term::line(&format!("{peer} has sent all of its trace, {bytes}"));
        }
        Told::Failed { peer, why } => term::note(&format!("{peer}: {why}")),
    }
}
