//! Sends a test flow over TCP and waits for the receiver's result (received and wrong bytes). The receiver is in
//! [`sink`](super::sink).

use super::pattern::TestFlowPattern;
use super::sink::{HEADER, PORT, TestFlowHeader, TestFlowVerdict, VERDICT, buffer};
use smoltcp::iface::{Context, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use std::net::Ipv4Addr;
use std::time::Duration;

/// Size of a flow's send buffer in bytes: several of the longest frames that the card segments.
const SEND_BUFFER: usize = 512 << 10;
/// Size in bytes of the receive buffer of a test flow's sender, which holds the receiver's result.
const RECEIVE_BUFFER: usize = 1 << 10;
/// Timeout of a flow's connection to a receiver that does not answer.
const CONNECT_TIMEOUT: smoltcp::time::Duration = smoltcp::time::Duration::from_secs(10);
/// Timeout of a connected receiver that acknowledges no byte of a flow. A stack waits 2, 4, 8 and 16 seconds between
/// retransmissions, so a flow survives the loss of four of them, for example by four resets of the card.
const STALL_TIMEOUT: smoltcp::time::Duration = smoltcp::time::Duration::from_secs(60);
const KEEP_ALIVE: smoltcp::time::Duration = smoltcp::time::Duration::from_secs(2);

/// Result of a TCP test flow between two guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestFlowResult {
    /// Number of bytes that the flow has to send.
    pub bytes: u64,
    /// Number of the flow's bytes that arrived at the receiver.
    pub received: u64,
    /// Position of the flow's first byte that arrived changed.
    pub first_wrong: Option<u64>,
    /// Time from the established connection to the arrival of the receiver's result.
    pub elapsed: Duration,
}

impl TestFlowResult {
    /// Returns true if every byte of the flow arrived unchanged.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.received == self.bytes && self.first_wrong.is_none()
    }

    /// Returns the flow's throughput in megabits a second.
    #[must_use]
    pub fn mbps(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { self.received as f64 * 8.0 / seconds / 1e6 } else { 0.0 }
    }
}

/// Reason why the sender of a TCP test flow got no result from the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TestFlowError {
    /// The receiver did not answer, or refused the flow's connection.
    #[error("the TCP flow could not connect to its peer")]
    NoConnection,
    /// The connection of the test flow ended before the receiver's result arrived.
    #[error("the TCP connection was lost after {acknowledged} acknowledged bytes")]
    Broken {
        /// Number of the flow's bytes that were acknowledged, its header included.
        acknowledged: u64,
    },
}

/// Sender of an unfinished TCP test flow, with the flow's socket and bytes.
#[derive(Debug)]
pub(super) struct TestFlowSender {
    handle: SocketHandle,
    header: [u8; HEADER],
    pattern: TestFlowPattern,
    bytes: u64,
    /// Start time of the flow in nanoseconds; `None` before the connection is established.
    started: Option<u64>,
    verdict: [u8; VERDICT],
    /// Number of bytes of the receiver's result that have arrived at the sender of the flow.
    verdict_bytes: usize,
}

impl TestFlowSender {
    /// Opens the TCP connection of a flow of `bytes` bytes. Returns `None` if the address is invalid.
    pub(super) fn connect(
        context: &mut Context,
        sockets: &mut SocketSet<'static>,
        to: Ipv4Addr,
        local_port: u16,
        bytes: u64,
        seed: u64,
    ) -> Option<Self> {
        let mut socket = tcp::Socket::new(buffer(RECEIVE_BUFFER), buffer(SEND_BUFFER));
        socket.set_timeout(Some(CONNECT_TIMEOUT));
        socket.set_keep_alive(Some(KEEP_ALIVE));
        socket.connect(context, (to, PORT), local_port).ok()?;
        Some(Self {
            handle: sockets.add(socket),
            header: TestFlowHeader { length: bytes, seed }.emit(),
            pattern: TestFlowPattern::new(seed),
            bytes,
            started: None,
            verdict: [0; VERDICT],
            verdict_bytes: 0,
        })
    }

    pub(super) fn handle(&self) -> SocketHandle {
        self.handle
    }

    /// Sends the flow's bytes that fit into the socket's buffer. Returns the flow's result at its end; the socket is
    /// then closing.
    pub(super) fn step(
        &mut self,
        sockets: &mut SocketSet<'static>,
        now_ns: u64,
    ) -> Option<Result<TestFlowResult, TestFlowError>> {
        let socket = sockets.get_mut::<tcp::Socket<'static>>(self.handle);
        if self.started.is_none() && socket.may_send() {
            self.started = Some(now_ns);
            socket.set_timeout(Some(STALL_TIMEOUT));
            // The buffer is empty and longer than a header, so the write cannot fail.
            let _ = socket.send_slice(&self.header);
        }
        self.fill(socket);
        self.receive_verdict(socket);
        if self.verdict_bytes == VERDICT {
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

    fn receive_verdict(&mut self, socket: &mut tcp::Socket<'static>) {
        while self.verdict_bytes < VERDICT && socket.can_recv() {
            match socket.recv_slice(&mut self.verdict[self.verdict_bytes..]) {
                Ok(count) => self.verdict_bytes += count,
                Err(_) => break,
            }
        }
    }

    fn outcome(&self, now_ns: u64) -> TestFlowResult {
        let TestFlowVerdict { received, first_wrong } = TestFlowVerdict::parse(&self.verdict);
        let elapsed = Duration::from_nanos(now_ns.saturating_sub(self.started.unwrap_or(now_ns)));
        TestFlowResult { bytes: self.bytes, received, first_wrong, elapsed }
    }

    fn failure(&self, socket: &tcp::Socket<'static>) -> TestFlowError {
        if self.started.is_none() {
            return TestFlowError::NoConnection;
        }
        let queued = HEADER as u64 + self.pattern.position();
        TestFlowError::Broken { acknowledged: queued.saturating_sub(socket.send_queue() as u64) }
    }
}
