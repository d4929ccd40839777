//! The server of TCP test flows: receives bytes, compares each with its expected value, and sends the result to the
//! sender.
//!
//! A flow, in bytes: the sender sends "SOFTIOVF", the number of bytes that will follow and the pattern's seed (each
//! 8 bytes, little-endian), then the bytes. The receiver answers with the number of bytes received and the position
//! of the first wrong one (all ones: none), and the sender closes.
//!
//! The sender is in [`flow`](super::flow).

use super::pattern::TestFlowPattern;
use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::time::Duration;

/// TCP port of the server that receives test flows.
pub(super) const PORT: u16 = 4_000;
/// Maximum number of simultaneous test flows at the server.
const FLOWS: usize = 4;
/// Receive window of a test flow in bytes: fewer full-sized frames than a receive ring of 256 holds, so that one flow
/// never overruns it.
const WINDOW: usize = 256 << 10;
/// Size in bytes of the server's send buffer for a test flow, which holds the result for the sender.
const ANSWERS: usize = 1 << 10;
/// Timeout of a test flow's sender that does not respond.
const PATIENCE: Duration = Duration::from_secs(10);
/// Period of keep-alive probes to the silent sender of a test flow.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

const MAGIC: [u8; 8] = *b"SOFTIOVF";
pub(super) const HEADER: usize = 24;
pub(super) const VERDICT: usize = 16;
const NOTHING_WRONG: u64 = u64::MAX;

/// Header of a test flow, which precedes the flow's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TestFlowHeader {
    pub(super) length: u64,
    pub(super) seed: u64,
}

impl TestFlowHeader {
    pub(super) fn emit(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..].copy_from_slice(&self.seed.to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8; HEADER]) -> Option<Self> {
        (bytes[..8] == MAGIC).then(|| Self { length: word(&bytes[8..]), seed: word(&bytes[16..]) })
    }
}

/// Verdict of the server at the end of a test flow: the number of received bytes, and the position of the first wrong
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TestFlowVerdict {
    pub(super) received: u64,
    pub(super) first_wrong: Option<u64>,
}

impl TestFlowVerdict {
    fn emit(self) -> [u8; VERDICT] {
        let mut bytes = [0; VERDICT];
        bytes[..8].copy_from_slice(&self.received.to_le_bytes());
        bytes[8..].copy_from_slice(&self.first_wrong.unwrap_or(NOTHING_WRONG).to_le_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8; VERDICT]) -> Self {
        let first_wrong = Some(word(&bytes[8..])).filter(|position| *position != NOTHING_WRONG);
        Self { received: word(bytes), first_wrong }
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

/// Phase of a test flow's connection at the server.
#[derive(Debug)]
enum TestFlowPhase {
    Header { bytes: [u8; HEADER], received: usize },
    Body { length: u64, pattern: TestFlowPattern, first_wrong: Option<u64> },
    Answered,
}

impl TestFlowPhase {
    const START: Self = Self::Header { bytes: [0; HEADER], received: 0 };

    /// Processes received bytes of a flow from the front of `data`: header, flow or surplus. Returns the number of
    /// processed bytes.
    fn take(&mut self, data: &[u8]) -> usize {
        match self {
            Self::Header { bytes, received } => {
                let count = data.len().min(HEADER - *received);
                bytes[*received..*received + count].copy_from_slice(&data[..count]);
                *received += count;
                if *received == HEADER {
                    *self = Self::begin(bytes);
                }
                count
            }
            Self::Body { length, pattern, first_wrong } => {
                let left = length.saturating_sub(pattern.position());
                let count = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let wrong = pattern.check(&data[..count]);
                *first_wrong = first_wrong.or(wrong);
                // Bytes beyond the announced length are dropped.
                if count > 0 { count } else { data.len() }
            }
            Self::Answered => data.len(),
        }
    }

    fn begin(header: &[u8; HEADER]) -> Self {
        match TestFlowHeader::parse(header) {
            Some(TestFlowHeader { length, seed }) => {
                Self::Body { length, pattern: TestFlowPattern::new(seed), first_wrong: None }
            }
            None => Self::Answered,
        }
    }

    /// Returns the verdict on the flow once all its bytes have arrived, or once the sender has closed the connection
    /// (`over`).
    fn verdict(&self, over: bool) -> Option<TestFlowVerdict> {
        match self {
            Self::Body { length, pattern, first_wrong } if over || pattern.position() >= *length => {
                Some(TestFlowVerdict { received: pattern.position(), first_wrong: *first_wrong })
            }
            _ => None,
        }
    }
}

/// Server for test flows: its sockets, and the phase of the flow on each.
#[derive(Debug)]
pub(super) struct TestFlowServer {
    connections: Vec<(SocketHandle, TestFlowPhase)>,
}

impl TestFlowServer {
    pub(super) fn new(sockets: &mut SocketSet<'static>) -> Self {
        let socket = || {
            let mut socket = tcp::Socket::new(buffer(WINDOW), buffer(ANSWERS));
            socket.set_timeout(Some(PATIENCE));
            socket.set_keep_alive(Some(KEEP_ALIVE));
            socket
        };
        Self { connections: (0..FLOWS).map(|_| (sockets.add(socket()), TestFlowPhase::START)).collect() }
    }

    /// Processes the received bytes of all flows' connections, and sends verdicts on flows that are complete.
    pub(super) fn step(&mut self, sockets: &mut SocketSet<'static>) {
        for (handle, phase) in &mut self.connections {
            serve(sockets.get_mut(*handle), phase);
        }
    }
}

pub(super) fn buffer(bytes: usize) -> tcp::SocketBuffer<'static> {
    tcp::SocketBuffer::new(vec![0; bytes])
}

fn serve(socket: &mut tcp::Socket<'static>, phase: &mut TestFlowPhase) {
    if !socket.is_open() {
        *phase = TestFlowPhase::START;
        // The call fails only for port 0 and for an open socket.
        let _ = socket.listen(PORT);
        return;
    }
    while socket.can_recv() {
        if socket.recv(|data| (phase.take(data), ())).is_err() {
            break;
        }
    }
    let over = socket.is_active() && !socket.may_recv() && socket.state() != tcp::State::SynReceived;
    if let Some(verdict) = phase.verdict(over)
        && socket.can_send()
    {
        // The socket's buffer is empty and longer than a verdict, so the write cannot fail.
        let _ = socket.send_slice(&verdict.emit());
        *phase = TestFlowPhase::Answered;
    }
    if over {
        socket.close();
    }
}

#[cfg(test)]
mod tests {
    use super::{TestFlowHeader, TestFlowPhase, TestFlowVerdict};
    use crate::guest::pattern::TestFlowPattern;

    fn flow(length: u64) -> Vec<u8> {
        let mut bytes = TestFlowHeader { length, seed: 5 }.emit().to_vec();
        let mut body = vec![0; length as usize];
        TestFlowPattern::new(5).fill(&mut body);
        bytes.extend(body);
        bytes
    }

    /// Passes a test flow's bytes to the server, 7 bytes at a time, and returns the flow's phase at the end.
    fn receive(bytes: &[u8]) -> TestFlowPhase {
        let mut phase = TestFlowPhase::START;
        for mut piece in bytes.chunks(7) {
            while !piece.is_empty() {
                piece = &piece[phase.take(piece)..];
            }
        }
        phase
    }

    #[test]
    fn complete_tcp_flow_gets_a_verdict_of_success() {
        let verdict = receive(&flow(100)).verdict(false).unwrap();
        assert_eq!(verdict, TestFlowVerdict { received: 100, first_wrong: None });
        assert_eq!(TestFlowVerdict::parse(&verdict.emit()), verdict);
    }

    #[test]
    fn truncated_tcp_flow_gets_a_verdict_at_its_end() {
        let phase = receive(&flow(100)[..74]);
        assert_eq!(phase.verdict(false), None);
        assert_eq!(phase.verdict(true), Some(TestFlowVerdict { received: 50, first_wrong: None }));
    }

    #[test]
    fn flow_verdict_names_the_first_changed_byte() {
        let mut bytes = flow(100);
        bytes[24 + 33] ^= 0x80;
        assert_eq!(
            receive(&bytes).verdict(false),
            Some(TestFlowVerdict { received: 100, first_wrong: Some(33) })
        );
    }

    #[test]
    fn tcp_test_flow_without_a_header_gets_no_verdict() {
        let phase = receive(&[b'x'; 400]);
        assert_eq!(phase.verdict(true), None);
    }

    #[test]
    fn bytes_beyond_the_announced_length_are_dropped_from_a_flow() {
        let mut bytes = flow(10);
        bytes.extend([0; 50]);
        assert_eq!(receive(&bytes).verdict(true), Some(TestFlowVerdict { received: 10, first_wrong: None }));
    }
}
