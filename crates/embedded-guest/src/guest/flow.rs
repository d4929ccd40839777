//! Sending a test flow and waiting for the receiver's verdict. Left out: the receiver ([`sink`](super::sink)).

use super::pattern::Pattern;
use super::sink::{HEADER, Header, PORT, VERDICT, Verdict, buffer};
use smoltcp::iface::{Context, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Bytes under way: several of the longest frames that the card segments.
const SEND_BUFFER: usize = 512 << 10;
/// A verdict is short.
const RECEIVE_BUFFER: usize = 1 << 10;
/// A receiver that acknowledges nothing for so long is gone.
const PATIENCE: smoltcp::time::Duration = smoltcp::time::Duration::from_secs(10);
const KEEP_ALIVE: smoltcp::time::Duration = smoltcp::time::Duration::from_secs(2);

/// What became of a TCP flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Bytes that were to be sent.
    pub bytes: u64,
    /// Bytes that the receiver has verified to have arrived, in order.
    pub received: u64,
    /// Position of the first byte that was not the one sent.
    pub first_wrong: Option<u64>,
    /// From the established connection to the receiver's verdict.
    pub elapsed: Duration,
}

impl Flow {
    /// Whether every byte arrived as it was sent.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.received == self.bytes && self.first_wrong.is_none()
    }

    /// Throughput of the flow's bytes, in megabits a second.
    #[must_use]
    pub fn mbps(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.received as f64 * 8.0 / seconds / 1e6 } else { 0.0 }
    }
}

/// Why there is no verdict on a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// Nobody answered, or nobody listens.
    #[error("no connection")]
    NoConnection,
    /// The connection ended before the verdict came.
    #[error("the connection broke after {acknowledged} bytes were acknowledged")]
    Broken {
        /// Bytes, the flow's header included.
        acknowledged: u64,
    },
}

/// A flow under way.
#[derive(Debug)]
pub(super) struct Sender {
    handle: SocketHandle,
    header: [u8; HEADER],
    pattern: Pattern,
    bytes: u64,
    /// Nanoseconds; `None` before the connection is there.
    started: Option<u64>,
    verdict: [u8; VERDICT],
    /// Bytes of the verdict that have come.
    have: usize,
}

impl Sender {
    /// Begins to connect. `None` if a connection to that address makes no sense.
    pub(super) fn connect(
        context: &mut Context,
        sockets: &mut SocketSet<'static>,
        to: Ipv4Addr,
        local_port: u16,
        bytes: u64,
        seed: u64,
    ) -> Option<Self> {
        let mut socket = tcp::Socket::new(buffer(RECEIVE_BUFFER), buffer(SEND_BUFFER));
        socket.set_timeout(Some(PATIENCE));
        socket.set_keep_alive(Some(KEEP_ALIVE));
        socket.connect(context, (to, PORT), local_port).ok()?;
        Some(Self {
            handle: sockets.add(socket),
            header: Header { length: bytes, seed }.emit(),
            pattern: Pattern::new(seed),
            bytes,
            started: None,
            verdict: [0; VERDICT],
            have: 0,
        })
    }

    pub(super) fn handle(&self) -> SocketHandle {
        self.handle
    }

    /// Sends what there is room for; answers when it is over. The socket is then closing.
    pub(super) fn step(
        &mut self,
        sockets: &mut SocketSet<'static>,
        now_ns: u64,
    ) -> Option<Result<Flow, FlowError>> {
        let socket = sockets.get_mut::<tcp::Socket<'static>>(self.handle);
        if self.started.is_none() && socket.may_send() {
            self.started = Some(now_ns);
            // The buffer is empty and longer than a header.
            let _ = socket.send_slice(&self.header);
        }
        self.fill(socket);
        self.listen(socket);
        if self.have == VERDICT {
            socket.close();
            return Some(Ok(self.outcome(now_ns)));
        }
        if socket.state() != tcp::State::SynSent && !socket.may_recv() {
            let error = self.failure(socket);
            socket.abort();
            return Some(Err(error));
        }
        None
    }

    fn fill(&mut self, socket: &mut tcp::Socket<'static>) {
        while self.started.is_some() && self.pattern.position() < self.bytes && socket.can_send() {
            let left = usize::try_from(self.bytes - self.pattern.position()).unwrap_or(usize::MAX);
            let filled = socket.send(|room| {
                let length = room.len().min(left);
                self.pattern.fill(&mut room[..length]);
                (length, ())
            });
            if filled.is_err() {
                break;
            }
        }
    }

    fn listen(&mut self, socket: &mut tcp::Socket<'static>) {
        while self.have < VERDICT && socket.can_recv() {
            match socket.recv_slice(&mut self.verdict[self.have..]) {
                Ok(count) => self.have += count,
                Err(_) => break,
            }
        }
    }

    fn outcome(&self, now_ns: u64) -> Flow {
        let Verdict { received, first_wrong } = Verdict::parse(&self.verdict);
        let elapsed = Duration::from_nanos(now_ns.saturating_sub(self.started.unwrap_or(now_ns)));
        Flow { bytes: self.bytes, received, first_wrong, elapsed }
    }

    fn failure(&self, socket: &tcp::Socket<'static>) -> FlowError {
        if self.started.is_none() {
            return FlowError::NoConnection;
        }
        let queued = HEADER as u64 + self.pattern.position();
        FlowError::Broken { acknowledged: queued.saturating_sub(socket.send_queue() as u64) }
    }
}
