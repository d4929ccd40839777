//! Bodies that a PF sends: statistics, and events. Left out: bodies that requests have as well (`resources`,
//! `vlan_offload`), and single numbers.

use super::list::Item;
use crate::bytes::{Put, Reader};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// What a VF has received and sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames to this station received.
    pub rx_unicast: u64,
    /// Frames to groups received.
    pub rx_multicast: u64,
    /// Frames to all received.
    pub rx_broadcast: u64,
    /// Frames that found no buffer.
    pub rx_discards: u64,
    /// Frames of an unknown protocol.
    pub rx_unknown: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames to a station sent.
    pub tx_unicast: u64,
    /// Frames to groups sent.
    pub tx_multicast: u64,
    /// Frames to all sent.
    pub tx_broadcast: u64,
    /// Frames that the card refused to send.
    pub tx_discards: u64,
    /// Frames that failed.
    pub tx_errors: u64,
}

impl Statistics {
    /// Every counter.
    #[must_use]
    pub fn all(&self) -> [u64; 12] {
        let Self { rx_bytes, rx_unicast, rx_multicast, rx_broadcast, rx_discards, rx_unknown, .. } = *self;
        let Self { tx_bytes, tx_unicast, tx_multicast, tx_broadcast, tx_discards, tx_errors, .. } = *self;
        let received = [rx_bytes, rx_unicast, rx_multicast, rx_broadcast, rx_discards, rx_unknown];
        let sent = [tx_bytes, tx_unicast, tx_multicast, tx_broadcast, tx_discards, tx_errors];
        core::array::from_fn(|at| if at < 6 { received[at] } else { sent[at - 6] })
    }
}

impl Item for Statistics {
    const SIZE: usize = 96;

    fn read(from: &mut Reader<'_>) -> Self {
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

/// The speed of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkSpeed {
    /// In Mb/s: where ADV_LINK_SPEED was negotiated.
    Mbps(u32),
    /// A bit of the old field, which knows nothing beyond 40 Gb/s.
    Bit(u32),
}

impl LinkSpeed {
    /// The old field's bit for a speed; 0 for one that it has no bit for.
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

    /// The word of the message.
    #[must_use]
    pub const fn word(self) -> u32 {
        match self {
            Self::Mbps(word) | Self::Bit(word) => word,
        }
    }
}

/// What a PF says of its own accord: 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The link has changed.
    Link {
        /// The speed: the word as it stands; what it means was negotiated.
        speed: u32,
        /// Frames can move.
        up: bool,
    },
    /// The VF is about to be reset.
    ResetImpending,
    /// A number that this crate does not know.
    Other(u32),
}

const LINK_CHANGE: u32 = 1;
const RESET_IMPENDING: u32 = 2;
/// The VF is certain to be disturbed.
const CERTAIN_DOOM: u32 = 255;

impl Item for Event {
    const SIZE: usize = 16;

    fn read(from: &mut Reader<'_>) -> Self {
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

/// A body of one fixed form.
#[must_use]
pub fn encode<T: Item>(body: &T) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(T::SIZE);
    body.write(&mut bytes);
    bytes
}

/// Reads a body of one fixed form; `None` if it is too short. PFs add to bodies: i40e sends a spare VSI with
/// [`super::Resources`].
#[must_use]
pub fn decode<T: Item>(body: &[u8]) -> Option<T> {
    (body.len() >= T::SIZE).then(|| T::read(&mut Reader::new(body)))
}
