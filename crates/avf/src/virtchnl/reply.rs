//! Message bodies that only a PF sends: statistics and events. [`super::resources`] and [`super::vlan_offload`] have
//! the replies to requests for resources and VLAN capabilities.

use super::list::MessageListElement;
use crate::bytes::{MessageFieldReader, MessageFieldWriter};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The card's counters of a VF's traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Statistics")]
pub struct VfTrafficStatistics {
    /// Number of bytes that the VF received.
    pub rx_bytes: u64,
    /// Number of frames to an individual address that the VF received.
    pub rx_unicast: u64,
    /// Number of frames to a group address that the VF received.
    pub rx_multicast: u64,
    /// Number of broadcast frames that the VF received.
    pub rx_broadcast: u64,
    /// Number of frames for the VF that found no receive buffer.
    pub rx_discards: u64,
    /// Number of frames of an unknown protocol that the VF received.
    pub rx_unknown: u64,
    /// Number of bytes that the VF sent.
    pub tx_bytes: u64,
    /// Number of frames to an individual address that the VF sent.
    pub tx_unicast: u64,
    /// Number of frames to a group address that the VF sent.
    pub tx_multicast: u64,
    /// Number of broadcast frames that the VF sent.
    pub tx_broadcast: u64,
    /// Number of the VF's frames that the card refused to send.
    pub tx_discards: u64,
    /// Number of the VF's frames that failed to be sent.
    pub tx_errors: u64,
}

impl VfTrafficStatistics {
    /// Returns every counter, in the order of the GET_STATS reply.
    #[must_use]
    pub fn all(&self) -> [u64; 12] {
        let Self { rx_bytes, rx_unicast, rx_multicast, rx_broadcast, rx_discards, rx_unknown, .. } = *self;
        let Self { tx_bytes, tx_unicast, tx_multicast, tx_broadcast, tx_discards, tx_errors, .. } = *self;
        let received = [rx_bytes, rx_unicast, rx_multicast, rx_broadcast, rx_discards, rx_unknown];
        let sent = [tx_bytes, tx_unicast, tx_multicast, tx_broadcast, tx_discards, tx_errors];
        core::array::from_fn(|at| if at < 6 { received[at] } else { sent[at - 6] })
    }
}

impl MessageListElement for VfTrafficStatistics {
    const SIZE: usize = 96;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        Self {
            rx_bytes: from.u64(),
            rx_unicast: from.u64(),
            rx_multicast: from.u64(),
            rx_broadcast: from.u64(),
            rx_discards: from.u64(),
            rx_unknown: from.u64(),
            tx_bytes: from.u64(),
            tx_unicast: from.u64(),
            tx_multicast: from.u64(),
            tx_broadcast: from.u64(),
            tx_discards: from.u64(),
            tx_errors: from.u64(),
        }
    }

    fn write(&self, to: &mut Vec<u8>) {
        let received = [self.rx_bytes, self.rx_unicast, self.rx_multicast, self.rx_broadcast];
        let lost = [self.rx_discards, self.rx_unknown];
        let sent = [self.tx_bytes, self.tx_unicast, self.tx_multicast, self.tx_broadcast];
        let failed = [self.tx_discards, self.tx_errors];
        for value in received.into_iter().chain(lost).chain(sent).chain(failed) {
            to.u64(value);
        }
    }
}

/// Speed of a VF's link, in the form that was negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkSpeed {
    /// Link speed in Mb/s, if ADV_LINK_SPEED was negotiated.
    Mbps(u32),
    /// Link speed as one bit of a bit mask, if ADV_LINK_SPEED was not negotiated. The mask has no bit beyond 40 Gb/s.
    Bit(u32),
}

impl LinkSpeed {
    /// Returns the bit that stands for a link speed in Mb/s without ADV_LINK_SPEED; 0 for a speed without a bit.
    #[must_use]
    pub const fn bit_of(mbps: u32) -> u32 {
        match mbps {
            100 => 1 << 1,
            1_000 => 1 << 2,
            10_000 => 1 << 3,
            40_000 => 1 << 4,
            20_000 => 1 << 5,
            25_000 => 1 << 6,
            2_500 => 1 << 0,
            5_000 => 1 << 7,
            _ => 0,
        }
    }

    /// Returns the link speed as the word of a link event.
    #[must_use]
    pub const fn word(self) -> u32 {
        match self {
            Self::Mbps(word) | Self::Bit(word) => word,
        }
    }
}

/// Event that a PF sends to a VF without a request: 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VirtchnlEvent {
    /// Event: the VF's link has changed.
    Link {
        /// Link speed as it is in the message; the negotiated capability defines its unit.
        speed: u32,
        /// True if the VF's link is up in the event.
        up: bool,
    },
    /// Event: the VF is about to be reset.
    ResetImpending,
    /// Event: its number is undefined.
    Other(u32),
}

const LINK_CHANGE: u32 = 1;
const RESET_IMPENDING: u32 = 2;
/// Severity of an event that certainly disturbs the VF.
const CERTAIN_DOOM: u32 = 255;

impl MessageListElement for VirtchnlEvent {
    const SIZE: usize = 16;

    fn read(from: &mut MessageFieldReader<'_>) -> Self {
        match from.u32() {
            LINK_CHANGE => Self::Link { speed: from.u32(), up: from.u8() != 0 },
            RESET_IMPENDING => Self::ResetImpending,
            other => Self::Other(other),
        }
    }

    fn write(&self, to: &mut Vec<u8>) {
        match *self {
            Self::Link { speed, up } => to.u32(LINK_CHANGE).u32(speed).u8(up.into()).zeros(3).u32(0),
            Self::ResetImpending => to.u32(RESET_IMPENDING).zeros(8).u32(CERTAIN_DOOM),
            Self::Other(number) => to.u32(number).zeros(12),
        };
    }
}

/// Encodes a message body of fixed size.
#[must_use]
pub fn encode<T: MessageListElement>(body: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(T::SIZE);
    body.write(&mut bytes);
    bytes
}

/// Parses a message body of fixed size, or returns `None` if the body is too short. Excess bytes are ignored since PFs
/// add to bodies: i40e sends a spare VSI with [`super::VfResources`].
#[must_use]
pub fn decode<T: MessageListElement>(body: &[u8]) -> Option<T> {
    (body.len() >= T::SIZE).then(|| T::read(&mut MessageFieldReader::new(body)))
}
