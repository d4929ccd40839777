//! Answering on the control socket. One thread serves all clients and waits for none of them. A client that is
//! silent, slow, or does not read its answer does not delay the others. Left out: what a request does.
//!
//! Requests are carried out one after the other, in the order in which they are complete. Each connection has one
//! request. Clients, their bytes and their time are bounded.

use super::protocol::{Answer, Call, Failure, INVALID_REQUEST, MAX_LINE, Request, Response};
use host::poll::{Interest, Poller, Waker};
use host::socket::{Listener, Stream};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a client may take to send its request, and as long again to read the response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Clients served at a time. One more takes the place of the client that has been silent for longest.
const MAX_CLIENTS: usize = 32;
/// Bytes taken from a client in one read.
const READ: usize = 16 * 1024;

/// Tokens of the poller: the listener, the end, and from here on clients by their place.
const LISTENER: u64 = 0;
const STOP: u64 = 1;
const CLIENTS: u64 = 2;

/// The control socket and its clients.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    poller: Poller,
    clients: [Option<Client>; MAX_CLIENTS],
}

impl Server {
    /// Serves clients of `listener` until `stop` is woken.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn new(listener: Listener, stop: &Waker) -> io::Result<Self> {
        let poller = Poller::new()?;
        poller.add(&listener, LISTENER, Interest::READ)?;
        poller.add(stop, STOP, Interest::READ)?;
        Ok(Self { listener, poller, clients: [const { None }; MAX_CLIENTS] })
    }

    /// Has `handle` carry out requests, and sends its answers, until the end; then gives the socket back.
    ///
    /// # Errors
    /// Nothing can be waited for any more. The socket is gone then.
    pub fn run(mut self, mut handle: impl FnMut(Request) -> Result<Answer, Failure>) -> io::Result<Listener> {
        loop {
            let left = self.deadlines().min().map(|at| at.saturating_duration_since(Instant::now()));
            let ready: Vec<u64> = self.poller.wait(left)?.map(|event| event.token).collect();
            for token in ready {
                match token {
                    STOP => return Ok(self.listener),
                    LISTENER => self.accept(),
                    token => self.visit((token - CLIENTS) as usize, &mut handle),
                }
            }
            self.cut_off_late_clients();
        }
    }

    fn deadlines(&self) -> impl Iterator<Item = Instant> {
        self.clients.iter().flatten().map(|client| client.deadline)
    }

    fn accept(&mut self) {
        let stream = match self.listener.accept() {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
            Err(error) => return tracing::debug!(%error, "a control client was turned away"),
        };
        let place = self.free_place();
        match Client::new(stream, &self.poller, CLIENTS + place as u64) {
            Ok(client) => self.clients[place] = Some(client),
            Err(error) => tracing::debug!(%error, "a control client cannot be served"),
        }
    }

    /// A place for a client, if need be that of the client whose time is over first.
    fn free_place(&mut self) -> usize {
        let free = self.clients.iter().position(Option::is_none);
        let oldest = || (0..MAX_CLIENTS).min_by_key(|&at| self.clients[at].as_ref().map(|c| c.deadline));
        let place = free.or_else(oldest).unwrap_or(0);
        self.drop_client(place, "there are too many clients");
        place
    }

    fn visit(&mut self, place: usize, handle: impl FnMut(Request) -> Result<Answer, Failure>) {
        let Some(client) = self.clients.get_mut(place).and_then(Option::as_mut) else { return };
        match client.visit(handle) {
            Ok(Next::Wait) => {}
            Ok(Next::Write) => {
                let modified = self.poller.modify(&client.stream, CLIENTS + place as u64, Interest::WRITE);
                if modified.is_err() {
                    self.drop_client(place, "its socket cannot be waited for");
                }
            }
            Ok(Next::Done) => self.drop_client(place, "it is served"),
            Err(error) => self.drop_client(place, &error.to_string()),
        }
    }

    fn cut_off_late_clients(&mut self) {
        let now = Instant::now();
        for place in 0..MAX_CLIENTS {
            if self.clients[place].as_ref().is_some_and(|client| client.deadline <= now) {
                self.drop_client(place, "it is too slow");
            }
        }
    }

    fn drop_client(&mut self, place: usize, why: &str) {
        if let Some(client) = self.clients[place].take() {
            // Closing the descriptor removes it from the poller too; a failure here has no consequence.
            let _ = self.poller.remove(&client.stream);
            tracing::debug!(why, "a control client goes");
        }
    }
}

/// A connected client.
#[derive(Debug)]
struct Client {
    stream: UnixStream,
    /// When its time is over.
    deadline: Instant,
    exchange: Exchange,
}

/// How far a client's request is.
#[derive(Debug)]
enum Exchange {
    /// What has come of it.
    Request(Vec<u8>),
    /// What is left of the response.
    Response(Vec<u8>),
}

/// What a visit to a client leads to.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Wait for what was waited for before.
    Wait,
    /// Wait for room to write.
    Write,
    /// It has its response.
    Done,
}

impl Client {
    fn new(stream: Stream, poller: &Poller, token: u64) -> io::Result<Self> {
        let stream = UnixStream::from(OwnedFd::from(stream));
        poller.add(&stream, token, Interest::READ)?;
        let exchange = Exchange::Request(Vec::new());
        Ok(Self { stream, deadline: Instant::now() + PATIENCE, exchange })
    }

    /// Takes what has come and sends what there is to send, as far as that goes without waiting.
    fn visit(&mut self, handle: impl FnMut(Request) -> Result<Answer, Failure>) -> io::Result<Next> {
        if let Exchange::Request(line) = &mut self.exchange {
            if !receive(&mut self.stream, line)? {
                return Ok(Next::Wait);
            }
            let response = respond(line, handle)?;
            self.exchange = Exchange::Response(response);
            self.deadline = Instant::now() + PATIENCE;
            return self.send().map(|done| if done { Next::Done } else { Next::Write });
        }
        self.send().map(|done| if done { Next::Done } else { Next::Wait })
    }

    /// Whether all of the response is sent.
    fn send(&mut self) -> io::Result<bool> {
        let Exchange::Response(rest) = &mut self.exchange else { return Ok(false) };
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => drop(rest.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// Reads more of a request: whether it is complete, by its end of line, the client's end, or the longest that it
/// may be.
fn receive(stream: &mut UnixStream, line: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; READ];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(true),
            Ok(count) => {
                let bytes = &buffer[..count];
                let end = bytes.iter().position(|byte| *byte == b'\n');
                line.extend_from_slice(&bytes[..end.unwrap_or(count)]);
                if end.is_some() || line.len() as u64 >= MAX_LINE {
                    return Ok(true);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// The response to a request, as a line.
fn respond(
    line: &[u8],
    mut handle: impl FnMut(Request) -> Result<Answer, Failure>,
) -> serde_json::Result<Vec<u8>> {
    let response = match serde_json::from_slice::<Call>(line) {
        Ok(call) => Response::new(call.id, handle(call.request)),
        Err(error) => {
            let message = format!("not a request of this version: {error}");
            Response::new(0, Err(Failure { code: INVALID_REQUEST, message }))
        }
    };
    let mut bytes = serde_json::to_vec(&response)?;
    bytes.push(b'\n');
    Ok(bytes)
}
