//! Traffic that the clients of a port send.

use sim::VirtualInstant;

/// Traffic that the clients of a port send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientTraffic {
    /// Port whose clients send nothing.
    Silent,
    /// Clients send datagrams at the full rate of the wire.
    Udp,
    /// Clients send datagrams at a fraction of the line rate.
    Paced {
        /// Rate of the datagrams, in thousandths of the line rate.
        permille: u16,
    },
    /// Clients send datagrams at a rate that changes at an instant.
    Step {
        /// Rate before the change, in thousandths of the line rate.
        before: u16,
        /// Rate after the change, in thousandths of the line rate.
        after: u16,
        /// Instant at which the rate changes.
        at: VirtualInstant,
    },
    /// Clients send datagrams for all guests of the port, at line rate.
    Broadcast,
    /// Clients send a TCP stream with a bounded window; the receiver may announce less.
    Tcp {
        /// Receive window of the stream, in segments.
        window: u16,
    },
    /// Clients send requests of one byte, each after the response to the previous one.
    RequestResponse,
}

impl ClientTraffic {
    /// Returns the rate of rate-limited clients, in thousandths of the line rate, or `None` for clients
    /// without a rate limit.
    pub(crate) fn pace(self, now: VirtualInstant) -> Option<u16> {
        match self {
            ClientTraffic::Paced { permille } => Some(permille),
            ClientTraffic::Step { before, after, at } => Some(if now < at { before } else { after }),
            _ => None,
        }
    }

    /// Returns `true` if clients are rate-limited.
    pub(crate) fn is_paced(self) -> bool {
        self.pace(VirtualInstant::ZERO).is_some()
    }
}
