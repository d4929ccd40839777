//! Receive descriptors, in the format that the driver posts and the three formats that the card writes back. The
//! formats report the same facts about a frame ([`RxWriteBack`]) in different fields: 32 bytes, which every driver
//! reads (legacy), the first half of these (16 bytes, an option of DPDK's build), and the flexible ones of later cards.
//!
//! Header split, time stamps and flow director's marks are not supported.

use super::{DD, field, field16, field32, word, words};
use pcie::low::{low_byte, low_dword};
use serde::{Deserialize, Serialize};

/// Bytes of a receive descriptor in the longest format.
pub const SIZE: usize = 32;
/// Bytes of a receive descriptor in the short format.
pub const SHORT: usize = 16;

/// Format of a queue's receive descriptors, chosen by a number (RXDID) in CONFIG_VSI_QUEUES.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Form")]
pub enum RxDescriptorFormat {
    /// Short format: receive descriptors of 16 bytes.
    Short,
    /// Legacy format: receive descriptors of 32 bytes, which need no capability.
    #[default]
    Legacy,
    /// Flexible format: receive descriptors of 32 bytes, with the hash in the second word.
    Flex(u8),
    /// Flexible format number 22: receive descriptors of 32 bytes, with the hash in the fourth word.
    FlexLate,
}

/// Number of the legacy receive descriptor format.
pub const RXDID_LEGACY: u8 = 1;
const RXDID_FLEX: u8 = 2;
const RXDID_COMMS: core::ops::RangeInclusive<u8> = 16..=21;
const RXDID_LATE: u8 = 22;

/// Supported receive descriptor formats, a bit each: the PF's reply to GET_SUPPORTED_RXDIDS.
pub const SUPPORTED: u64 = 1 << RXDID_LEGACY | 1 << RXDID_FLEX | 1 << RXDID_LATE;

impl RxDescriptorFormat {
    /// Returns the receive descriptor format that a number (RXDID) stands for. Every number means legacy unless
    /// flexible descriptors were negotiated; then 0 means short.
    #[must_use]
    pub fn of(rxdid: u8, flexible: bool) -> Option<Self> {
        match rxdid {
            _ if !flexible => Some(Self::Legacy),
            0 => Some(Self::Short),
            RXDID_LEGACY => Some(Self::Legacy),
            RXDID_LATE => Some(Self::FlexLate),
            RXDID_FLEX => Some(Self::Flex(rxdid)),
            _ if RXDID_COMMS.contains(&rxdid) => Some(Self::Flex(rxdid)),
            _ => None,
        }
    }

    /// Returns the number of the receive descriptor format.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Short => 0,
            Self::Legacy => RXDID_LEGACY,
            Self::Flex(number) => number,
            Self::FlexLate => RXDID_LATE,
        }
    }

    /// Returns the number of bytes of a receive descriptor in this format.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Short => SHORT,
            _ => SIZE,
        }
    }
}

/// Returns the buffer address of a posted receive descriptor. The header buffer's address is ignored.
#[must_use]
#[inline]
pub fn buffer(raw: &[u8]) -> u64 {
    word(raw, 0)
}

/// Creates a receive descriptor as the driver posts it.
#[must_use]
#[inline]
pub fn posted(buffer: u64) -> [u8; SIZE] {
    words([buffer, 0, 0, 0])
}

/// Kind of a frame's destination address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DestinationAddressKind {
    /// Destination of one station: the frame goes to an individual address.
    #[default]
    Unicast,
    /// Destination of a group: the frame goes to a group address.
    Multicast,
    /// Destination of all stations: the frame goes to the broadcast address.
    Broadcast,
}

/// Result of the card's check of a received frame's checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RxChecksumResult {
    /// True if the IPv4 header checksum is wrong.
    pub ip_wrong: bool,
    /// True if the TCP, UDP or SCTP checksum is wrong.
    pub l4_wrong: bool,
}

/// Report of the card on the frame in a receive buffer. Only `length` and `end_of_packet` are valid before the last
/// buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RxWriteBack {
    /// Bytes of the frame in this buffer (14 bits).
    pub length: u16,
    /// True if the buffer is the last of the frame.
    pub end_of_packet: bool,
    /// Packet type of the frame, see [`crate::packet_type`] (8 bits).
    pub packet_type: u8,
    /// Result of the check of the frame's checksums; `None` if the card did not check.
    pub checksums: Option<RxChecksumResult>,
    /// VLAN tag that the card stripped from the frame.
    pub tag: Option<u16>,
    /// RSS hash of the frame.
    pub hash: Option<u32>,
    /// Kind of the frame's destination address. Flexible formats do not have it.
    pub cast: DestinationAddressKind,
    /// True if the frame came from inside the card.
    pub loopback: bool,
    /// True if the buffer includes the frame's check sequence.
    pub fcs: bool,
    /// True if the frame arrived damaged.
    pub damaged: bool,
}

const fn flag(on: bool, bit: u32) -> u64 {
    (on as u64) << bit
}

mod legacy {
    pub(super) const EOF: u32 = 1;
    pub(super) const L2TAG1P: u32 = 2;
    pub(super) const L3L4P: u32 = 3;
    pub(super) const CRCP: u32 = 4;
    pub(super) const UMBCAST: u32 = 9;
    pub(super) const FLTSTAT: u32 = 12;
    pub(super) const LPBK: u32 = 14;
    pub(super) const RXE: u32 = 19;
    pub(super) const IPE: u32 = 22;
    pub(super) const L4E: u32 = 23;
    pub(super) const PTYPE: u32 = 30;
    pub(super) const LENGTH: u32 = 38;
    pub(super) const HASH_VALID: u64 = 3;
}

mod flex {
    pub(super) const EOF: u32 = 1;
    pub(super) const L3L4P: u32 = 3;
    pub(super) const IPE: u32 = 4;
    pub(super) const L4E: u32 = 5;
    pub(super) const LPBK: u32 = 8;
    pub(super) const RXE: u32 = 10;
    pub(super) const CRCP: u32 = 11;
    pub(super) const RSS_VALID: u32 = 12;
    pub(super) const L2TAG1P: u32 = 13;
    pub(super) const PTYPE: u32 = 16;
    pub(super) const LENGTH: u32 = 32;
}

/// Returns the bits of a receive descriptor's first two words that report packet type and checksums.
/// [`RxWriteBackTemplate`] adds the common bits and the length.
#[must_use]
pub const fn contents(
    form: RxDescriptorFormat,
    packet_type: u8,
    checksums: Option<RxChecksumResult>,
) -> [u64; 2] {
    let (looked, found) = match checksums {
        Some(found) => (true, found),
        None => (false, RxChecksumResult { ip_wrong: false, l4_wrong: false }),
    };
    match form {
        RxDescriptorFormat::Short | RxDescriptorFormat::Legacy => {
            let wrong = flag(found.ip_wrong, legacy::IPE) | flag(found.l4_wrong, legacy::L4E);
            [0, flag(looked, legacy::L3L4P) | wrong | (packet_type as u64) << legacy::PTYPE]
        }
        RxDescriptorFormat::Flex(_) | RxDescriptorFormat::FlexLate => {
            let wrong = flag(found.ip_wrong, flex::IPE) | flag(found.l4_wrong, flex::L4E);
            [(packet_type as u64) << flex::PTYPE, flag(looked, flex::L3L4P) | wrong]
        }
    }
}

/// Bits that the receive descriptors of many whole frames have in common. A template yields the words of
/// [`RxWriteBack::emit`], at less cost per frame.
#[derive(Debug, Clone, Copy)]
pub struct RxWriteBackTemplate {
    form: RxDescriptorFormat,
    common: [u64; 2],
    /// Increment of each descriptor word for each byte of the frame's length.
    byte: [u64; 2],
}

impl RxWriteBackTemplate {
    /// Creates the template for frames that each fill one descriptor, with the stripped tag and the loopback bit.
    #[must_use]
    #[inline]
    pub fn new(form: RxDescriptorFormat, tag: Option<u16>, loopback: bool) -> Self {
        let (present, bits) = (tag.is_some(), u64::from(tag.unwrap_or(0)) << 16);
        match form {
            RxDescriptorFormat::Short | RxDescriptorFormat::Legacy => {
                let bits_of_frame = flag(present, legacy::L2TAG1P) | flag(loopback, legacy::LPBK);
                let second = DD | flag(true, legacy::EOF) | bits_of_frame;
                Self { form, common: [bits, second], byte: [0, 1 << legacy::LENGTH] }
            }
            RxDescriptorFormat::Flex(_) | RxDescriptorFormat::FlexLate => {
                let bits_of_frame = flag(present, flex::L2TAG1P) | flag(loopback, flex::LPBK);
                let second = DD | flag(true, flex::EOF) | bits_of_frame | bits;
                Self { form, common: [form.number().into(), second], byte: [1 << flex::LENGTH, 0] }
            }
        }
    }

    /// Returns the format of the template's receive descriptors.
    #[must_use]
    #[inline]
    pub fn form(&self) -> RxDescriptorFormat {
        self.form
    }

    /// Returns the words of a descriptor with the template's bits, those of [`contents`], the hash, and the length in
    /// bytes, which is below 16,384.
    #[must_use]
    #[inline(always)]
    pub fn words(&self, [first, second]: [u64; 2], hash: Option<u32>, length: u32) -> [u64; 4] {
        let lengths = self.byte.map(|byte| byte * u64::from(length));
        let first = self.common[0] | first | lengths[0];
        let second = self.common[1] | second | lengths[1];
        let Some(hash) = hash.map(u64::from) else { return [first, second, 0, 0] };
        match self.form {
            RxDescriptorFormat::Short | RxDescriptorFormat::Legacy => {
                [first | hash << 32, second | legacy::HASH_VALID << legacy::FLTSTAT, 0, 0]
            }
            RxDescriptorFormat::Flex(_) => [first, second | flag(true, flex::RSS_VALID) | hash << 32, 0, 0],
            RxDescriptorFormat::FlexLate => [first, second | flag(true, flex::RSS_VALID), 0, hash],
        }
    }
}

impl RxWriteBack {
    /// Returns the receive descriptor as the card writes it, with DD set; a shorter format fills only the first bytes.
    /// The card must write the second word last, since DD is in it.
    #[must_use]
    #[inline(always)]
    pub fn emit(&self, form: RxDescriptorFormat) -> [u8; SIZE] {
        match form {
            RxDescriptorFormat::Short | RxDescriptorFormat::Legacy => self.emit_legacy(),
            RxDescriptorFormat::Flex(rxdid) => {
                let hash = u64::from(self.hash.unwrap_or(0));
                words([self.flex_first(rxdid), self.flex_second() | hash << 32, 0, 0])
            }
            RxDescriptorFormat::FlexLate => {
                let hash = u64::from(self.hash.unwrap_or(0));
                words([self.flex_first(RXDID_LATE), self.flex_second(), 0, hash])
            }
        }
    }

    /// Parses a receive descriptor, or returns `None` while the card has not written it back.
    #[must_use]
    #[inline]
    pub fn parse(raw: &[u8], form: RxDescriptorFormat) -> Option<Self> {
        if word(raw, 1) & DD == 0 {
            return None;
        }
        Some(match form {
            RxDescriptorFormat::Short | RxDescriptorFormat::Legacy => Self::parse_legacy(raw),
            RxDescriptorFormat::Flex(_) => Self::parse_flex(raw, low_dword(word(raw, 1) >> 32)),
            RxDescriptorFormat::FlexLate => Self::parse_flex(raw, low_dword(word(raw, 3))),
        })
    }

    #[inline(always)]
    fn emit_legacy(&self) -> [u8; SIZE] {
        let first = u64::from(self.tag.unwrap_or(0)) << 16 | u64::from(self.hash.unwrap_or(0)) << 32;
        let found = self.checksums.unwrap_or_default();
        let cast = match self.cast {
            DestinationAddressKind::Unicast => 0_u64,
            DestinationAddressKind::Multicast => 1,
            DestinationAddressKind::Broadcast => 2,
        };
        let second = DD
            | flag(self.end_of_packet, legacy::EOF)
            | flag(self.tag.is_some(), legacy::L2TAG1P)
            | flag(self.checksums.is_some(), legacy::L3L4P)
            | flag(self.fcs, legacy::CRCP)
            | cast << legacy::UMBCAST
            | if self.hash.is_some() { legacy::HASH_VALID << legacy::FLTSTAT } else { 0 }
            | flag(self.loopback, legacy::LPBK)
            | flag(self.damaged, legacy::RXE)
            | flag(found.ip_wrong, legacy::IPE)
            | flag(found.l4_wrong, legacy::L4E)
            | u64::from(self.packet_type) << legacy::PTYPE
            | field(self.length.into(), 0, 14) << legacy::LENGTH;
        words([first, second, 0, 0])
    }

    #[inline(always)]
    fn parse_legacy(raw: &[u8]) -> Self {
        let (first, info) = (word(raw, 0), word(raw, 1));
        let on = |bit: u32| field(info, bit, 1) != 0;
        Self {
            length: field16(info, legacy::LENGTH, 14),
            end_of_packet: on(legacy::EOF),
            packet_type: low_byte(field32(info, legacy::PTYPE, 8)),
            checksums: on(legacy::L3L4P)
                .then(|| RxChecksumResult { ip_wrong: on(legacy::IPE), l4_wrong: on(legacy::L4E) }),
            tag: on(legacy::L2TAG1P).then_some(field16(first, 16, 16)),
            hash: (field(info, legacy::FLTSTAT, 2) == legacy::HASH_VALID).then_some(low_dword(first >> 32)),
            cast: match field(info, legacy::UMBCAST, 2) {
                1 => DestinationAddressKind::Multicast,
                2 => DestinationAddressKind::Broadcast,
                _ => DestinationAddressKind::Unicast,
            },
            loopback: on(legacy::LPBK),
            fcs: on(legacy::CRCP),
            damaged: on(legacy::RXE),
        }
    }

    #[inline(always)]
    fn flex_first(&self, rxdid: u8) -> u64 {
        u64::from(rxdid)
            | u64::from(self.packet_type) << flex::PTYPE
            | field(self.length.into(), 0, 14) << flex::LENGTH
    }

    #[inline(always)]
    fn flex_second(&self) -> u64 {
        let found = self.checksums.unwrap_or_default();
        DD | flag(self.end_of_packet, flex::EOF)
            | flag(self.checksums.is_some(), flex::L3L4P)
            | flag(found.ip_wrong, flex::IPE)
            | flag(found.l4_wrong, flex::L4E)
            | flag(self.loopback, flex::LPBK)
            | flag(self.damaged, flex::RXE)
            | flag(self.fcs, flex::CRCP)
            | flag(self.hash.is_some(), flex::RSS_VALID)
            | flag(self.tag.is_some(), flex::L2TAG1P)
            | u64::from(self.tag.unwrap_or(0)) << 16
    }

    #[inline(always)]
    fn parse_flex(raw: &[u8], hash: u32) -> Self {
        let (first, info) = (word(raw, 0), word(raw, 1));
        let on = |bit: u32| field(info, bit, 1) != 0;
        Self {
            length: field16(first, flex::LENGTH, 14),
            end_of_packet: on(flex::EOF),
            packet_type: low_byte(field32(first, flex::PTYPE, 10)),
            checksums: on(flex::L3L4P)
                .then(|| RxChecksumResult { ip_wrong: on(flex::IPE), l4_wrong: on(flex::L4E) }),
            tag: on(flex::L2TAG1P).then_some(field16(info, 16, 16)),
            hash: on(flex::RSS_VALID).then_some(hash),
            cast: DestinationAddressKind::Unicast,
            loopback: on(flex::LPBK),
            fcs: on(flex::CRCP),
            damaged: on(flex::RXE),
        }
    }
}
