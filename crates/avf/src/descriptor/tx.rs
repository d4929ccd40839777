//! Transmit descriptors, 16 bytes: data descriptors, which name a buffer, and context descriptors, which precede the
//! data of a packet to be segmented. The card returns a descriptor to the driver by writing its type as done, and only
//! where RS is set.
//!
//! Flow director programming, IPsec and the other offloads of tunnels are not supported.

use super::{field, field16, field32, word, words};
use pcie::low::{low_byte, low_dword};
use serde::{Deserialize, Serialize};

/// Bytes of a transmit descriptor.
pub const SIZE: usize = 16;

const DATA: u64 = 0;
const CONTEXT: u64 = 1;
const DONE: u64 = 0xf;
/// Position of the command in a data descriptor's second word.
const COMMAND_SHIFT: u32 = 4;

/// Commands of a data descriptor, from bit 4 of the second word on.
pub mod command {
    /// Command bit EOP: the descriptor has the packet's last buffer.
    pub const EOP: u64 = 1 << 0;
    /// Command bit RS: requests a report when the packet is done.
    pub const RS: u64 = 1 << 1;
    /// Command bit ICRC: the card appends the frame check sequence.
    pub const ICRC: u64 = 1 << 2;
    /// Command bit IL2TAG1: the card inserts the tag in L2TAG1.
    pub const IL2TAG1: u64 = 1 << 3;
    /// Command bit DUMMY: the descriptor carries no packet.
    pub const DUMMY: u64 = 1 << 4;
}

/// Bit in the second word of a data descriptor that requests a report.
pub const REPORT: u64 = command::RS << COMMAND_SHIFT;

/// Kind of a packet's IP header, as the driver states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Ip")]
pub enum TxIpHeaderKind {
    /// IP header kind: the driver states no IP header.
    #[default]
    None,
    /// IP header kind: IPv6.
    V6,
    /// IP header kind: IPv4, whose checksum the card keeps.
    V4,
    /// IP header kind: IPv4, whose checksum the card computes.
    V4Checksum,
}

/// Transport protocol whose checksum the card computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "L4")]
pub enum TxL4Checksum {
    /// Transport checksum: none to compute.
    #[default]
    None,
    /// Transport checksum to compute: TCP's.
    Tcp,
    /// Transport checksum to compute: SCTP's.
    Sctp,
    /// Transport checksum to compute: UDP's.
    Udp,
}

/// Transmit data descriptor: a buffer of a packet, and the packet's offloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Data")]
pub struct TxDataDescriptor {
    /// Address of the packet's buffer.
    pub address: u64,
    /// Bytes of the packet in the buffer (14 bits).
    pub length: u16,
    /// True if the buffer is the last of the packet.
    pub end_of_packet: bool,
    /// True if the driver requests a report when the packet is done.
    pub report_status: bool,
    /// VLAN tag that the card inserts into the frame. Valid only in the packet's first descriptor.
    pub tag: Option<u16>,
    /// True if the descriptor carries no packet.
    pub dummy: bool,
    /// Kind of the packet's IP header.
    pub ip: TxIpHeaderKind,
    /// Transport protocol to compute the checksum of.
    pub l4: TxL4Checksum,
    /// Bytes before the IP header: an even number up to 254.
    pub mac_length: u16,
    /// Bytes of the IP header: a multiple of 4 up to 508.
    pub ip_length: u16,
    /// Bytes of the transport header: a multiple of 4 up to 60.
    pub l4_length: u16,
}

/// Transmit context descriptor: instructions for the packet that follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Context")]
pub struct TxContextDescriptor {
    /// True if the card must segment the packet that follows.
    pub segment: bool,
    /// True if the card must time-stamp the packet that follows.
    pub time_stamp: bool,
    /// Second VLAN tag to insert into the packet that follows.
    pub tag2: Option<u16>,
    /// Payload bytes of the packet before segmentation (18 bits).
    pub payload: u32,
    /// Payload bytes of each segment of the packet (14 bits).
    pub mss: u16,
    /// Tunnel parameters of the packet, unparsed: bits 31:0 of the first word. 0 is none.
    pub tunnel: u32,
}

/// Parsed transmit descriptor of any type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParsedTxDescriptor {
    /// The transmit descriptor names a buffer of a packet.
    Data(TxDataDescriptor),
    /// The transmit descriptor has instructions for the packet that follows.
    Context(TxContextDescriptor),
    /// The transmit descriptor is of a type that this card does not support.
    Other(u8),
}

/// Parses a transmit descriptor from its bytes.
#[must_use]
#[inline]
pub fn parse(raw: &[u8; SIZE]) -> ParsedTxDescriptor {
    match field(word(raw, 1), 0, 4) {
        DATA => ParsedTxDescriptor::Data(TxDataDescriptor::parse(raw)),
        CONTEXT => ParsedTxDescriptor::Context(TxContextDescriptor::parse(raw)),
        other => ParsedTxDescriptor::Other(low_byte(low_dword(other))),
    }
}

/// Mask of bits in a data descriptor's second word that are fixed if the descriptor is a whole packet: type, EOP,
/// IL2TAG1, DUMMY.
const ALONE_MASK: u64 = 0xf | (command::EOP | command::IL2TAG1 | command::DUMMY) << COMMAND_SHIFT;
const ALONE: u64 = DATA | command::EOP << COMMAND_SHIFT;
/// Mask of the IP header's kind and of the transport protocol in a data descriptor's second word.
const HEADERS: u64 = (3 << 5 | 3 << 8) << COMMAND_SHIFT;

/// Returns the length in bytes of a packet that is one descriptor without offloads, from the descriptor's second word,
/// or `None` for every other packet.
#[must_use]
#[inline(always)]
pub fn plain_length(second: u64) -> Option<u32> {
    (second & (ALONE_MASK | HEADERS) == ALONE).then(|| field32(second, 34, 14))
}

/// Returns the length in bytes of a packet that is one descriptor, with or without header kinds and checksum
/// requests.
#[must_use]
#[inline(always)]
pub fn summed_length(second: u64) -> Option<u32> {
    plain_length(second & !HEADERS)
}

/// Returns true if a data descriptor requests a report.
#[must_use]
#[inline]
pub fn reports(raw: &[u8; SIZE]) -> bool {
    word(raw, 1) & REPORT != 0
}

/// Returns the second word of a transmit descriptor that the card has returned. The card writes no other word.
#[must_use]
pub const fn done() -> [u8; 8] {
    DONE.to_le_bytes()
}

/// Returns true if the card has returned the transmit descriptor.
#[must_use]
pub fn is_done(raw: &[u8; SIZE]) -> bool {
    field(word(raw, 1), 0, 4) == DONE
}

const TSO: u64 = 1 << 0;
const TSYN: u64 = 1 << 1;
const IL2TAG2: u64 = 1 << 2;

impl TxDataDescriptor {
    /// Parses a data descriptor from its bytes.
    #[must_use]
    pub fn parse(raw: &[u8; SIZE]) -> Self {
        let (address, info) = (word(raw, 0), word(raw, 1));
        let command = field(info, COMMAND_SHIFT, 10);
        Self {
            address,
            length: field16(info, 34, 14),
            end_of_packet: command & command::EOP != 0,
            report_status: command & command::RS != 0,
            tag: (command & command::IL2TAG1 != 0).then_some(field16(info, 48, 16)),
            dummy: command & command::DUMMY != 0,
            ip: match field(command, 5, 2) {
                1 => TxIpHeaderKind::V6,
                2 => TxIpHeaderKind::V4,
                3 => TxIpHeaderKind::V4Checksum,
                _ => TxIpHeaderKind::None,
            },
            l4: match field(command, 8, 2) {
                1 => TxL4Checksum::Tcp,
                2 => TxL4Checksum::Sctp,
                3 => TxL4Checksum::Udp,
                _ => TxL4Checksum::None,
            },
            mac_length: field16(info, 16, 7) * 2,
            ip_length: field16(info, 23, 7) * 4,
            l4_length: field16(info, 30, 4) * 4,
        }
    }

    /// Returns the data descriptor as the driver writes it.
    #[must_use]
    #[inline]
    pub fn emit(&self) -> [u8; SIZE] {
        words(self.words())
    }

    /// Returns the data descriptor as two words.
    #[must_use]
    #[inline(always)]
    pub fn words(&self) -> [u64; 2] {
        let flag = |on: bool, bit: u64| if on { bit } else { 0 };
        let ip: u64 = match self.ip {
            TxIpHeaderKind::None => 0,
            TxIpHeaderKind::V6 => 1,
            TxIpHeaderKind::V4 => 2,
            TxIpHeaderKind::V4Checksum => 3,
        };
        let l4: u64 = match self.l4 {
            TxL4Checksum::None => 0,
            TxL4Checksum::Tcp => 1,
            TxL4Checksum::Sctp => 2,
            TxL4Checksum::Udp => 3,
        };
        let command = flag(self.end_of_packet, command::EOP)
            | flag(self.report_status, command::RS)
            | flag(self.tag.is_some(), command::IL2TAG1)
            | flag(self.dummy, command::DUMMY)
            | command::ICRC
            | ip << 5
            | l4 << 8;
        let info = DATA
            | command << 4
            | field((self.mac_length / 2).into(), 0, 7) << 16
            | field((self.ip_length / 4).into(), 0, 7) << 23
            | field((self.l4_length / 4).into(), 0, 4) << 30
            | field(self.length.into(), 0, 14) << 34
            | u64::from(self.tag.unwrap_or(0)) << 48;
        [self.address, info]
    }
}

impl TxContextDescriptor {
    fn parse(raw: &[u8; SIZE]) -> Self {
        let (first, info) = (word(raw, 0), word(raw, 1));
        let command = field(info, 4, 7);
        Self {
            segment: command & TSO != 0,
            time_stamp: command & TSYN != 0,
            tag2: (command & IL2TAG2 != 0).then_some(field16(first, 32, 16)),
            payload: field32(info, 30, 18),
            mss: field16(info, 50, 14),
            tunnel: low_dword(first),
        }
    }

    /// Returns the context descriptor as the driver writes it.
    #[must_use]
    pub fn emit(&self) -> [u8; SIZE] {
        let flag = |on: bool, bit: u64| if on { bit } else { 0 };
        let command =
            flag(self.segment, TSO) | flag(self.time_stamp, TSYN) | flag(self.tag2.is_some(), IL2TAG2);
        let first = u64::from(self.tunnel) | u64::from(self.tag2.unwrap_or(0)) << 32;
        let info = CONTEXT
            | command << 4
            | field(self.payload.into(), 0, 18) << 30
            | field(self.mss.into(), 0, 14) << 50;
        words([first, info])
    }
}
