//! Receive descriptors: as the driver posts them, and as the card writes them back, in three forms. Each form says the
//! same of a frame ([`WriteBack`]) in other places: 32 bytes as every driver knows them (legacy), the first half of
//! these (16 bytes, which DPDK can be built for), and the flexible ones that later cards have.
//!
//! Left out: header split, time stamps, flow director's marks.

use super::{DD, field, word, words};
use serde::{Deserialize, Serialize};

/// Bytes of the longest form.
pub const SIZE: usize = 32;
/// Bytes of the short one.
pub const SHORT: usize = 16;

/// The form that a queue's descriptors have, by the number in CONFIG_VSI_QUEUES.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Form {
    /// 16 bytes.
    Short,
    /// 32 bytes.
    #[default]
    Legacy,
    /// 32 bytes, the hash in the second word.
    Flex(u8),
    /// 32 bytes, the hash in the fourth word (number 22).
    FlexLate,
}

/// Legacy.
pub const RXDID_LEGACY: u8 = 1;
const RXDID_FLEX: u8 = 2;
const RXDID_COMMS: core::ops::RangeInclusive<u8> = 16..=21;
const RXDID_LATE: u8 = 22;

/// The answer to GET_SUPPORTED_RXDIDS: a bit each.
pub const SUPPORTED: u64 = 1 << RXDID_LEGACY | 1 << RXDID_FLEX | 1 << RXDID_LATE;

impl Form {
    /// The form of a number. Without flexible descriptors negotiated every number means legacy; with them 0 is short.
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

    /// The number of a form.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Short => 0,
            Self::Legacy => RXDID_LEGACY,
            Self::Flex(number) => number,
            Self::FlexLate => RXDID_LATE,
        }
    }

    /// Bytes of a descriptor.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Short => SHORT,
            _ => SIZE,
        }
    }
}

/// A posted descriptor's buffer. The header's address is not looked at.
#[must_use]
#[inline]
pub fn buffer(raw: &[u8]) -> u64 {
    word(raw, 0)
}

/// A descriptor as the driver posts it.
#[must_use]
#[inline]
pub fn posted(buffer: u64) -> [u8; SIZE] {
    words([buffer, 0, 0, 0])
}

/// The kind of a frame's destination address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cast {
    /// One station.
    #[default]
    Unicast,
    /// A group.
    Multicast,
    /// All.
    Broadcast,
}

/// What the card found of checksums, when it looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checksums {
    /// The IPv4 header's is wrong.
    pub ip_wrong: bool,
    /// That of TCP, UDP or SCTP is wrong.
    pub l4_wrong: bool,
}

/// What the card says of a buffer's frame. Only length and `end_of_packet` count before the last buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteBack {
    /// Bytes in this buffer (14 bits).
    pub length: u16,
    /// The frame's last buffer.
    pub end_of_packet: bool,
    /// See [`crate::packet_type`] (8 bits).
    pub packet_type: u8,
    /// What was found of checksums; `None` if the card did not look.
    pub checksums: Option<Checksums>,
    /// The tag that was taken out.
    pub tag: Option<u16>,
    /// The hash.
    pub hash: Option<u32>,
    /// The kind of its destination address. Flexible forms do not have it.
    pub cast: Cast,
    /// The frame came from inside the card.
    pub loopback: bool,
    /// The frame check sequence is there.
    pub fcs: bool,
    /// The frame is damaged.
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

/// The first two words of descriptors of a form that tell a frame's packet type and checksums. What they have in common and the
/// length is to be added ([`PlainWords`]).
#[must_use]
pub const fn contents(form: Form, packet_type: u8, checksums: Option<Checksums>) -> [u64; 2] {
    let (looked, found) = match checksums {
        Some(found) => (true, found),
        None => (false, Checksums { ip_wrong: false, l4_wrong: false }),
    };
    match form {
        Form::Short | Form::Legacy => {
            let wrong = flag(found.ip_wrong, legacy::IPE) | flag(found.l4_wrong, legacy::L4E);
            [0, flag(looked, legacy::L3L4P) | wrong | (packet_type as u64) << legacy::PTYPE]
        }
        Form::Flex(_) | Form::FlexLate => {
            let wrong = flag(found.ip_wrong, flex::IPE) | flag(found.l4_wrong, flex::L4E);
            [(packet_type as u64) << flex::PTYPE, flag(looked, flex::L3L4P) | wrong]
        }
    }
}

/// Descriptors of one form that have much in common. They say what [`WriteBack::emit`] would.
#[derive(Debug, Clone, Copy)]
pub struct PlainWords {
    form: Form,
    common: [u64; 2],
    /// Addend of each word for a byte of length.
    byte: [u64; 2],
}

impl PlainWords {
    /// Descriptors of a form, each of a whole frame: the tag that was taken out of it, and whether it came from inside the card.
    #[must_use]
    #[inline]
    pub fn new(form: Form, tag: Option<u16>, loopback: bool) -> Self {
        let (present, bits) = (tag.is_some(), u64::from(tag.unwrap_or(0)) << 16);
        match form {
            Form::Short | Form::Legacy => {
                let told = flag(present, legacy::L2TAG1P) | flag(loopback, legacy::LPBK);
                let second = DD | flag(true, legacy::EOF) | told;
                Self { form, common: [bits, second], byte: [0, 1 << legacy::LENGTH] }
            }
            Form::Flex(_) | Form::FlexLate => {
                let told = flag(present, flex::L2TAG1P) | flag(loopback, flex::LPBK);
                let second = DD | flag(true, flex::EOF) | told | bits;
                Self { form, common: [form.number().into(), second], byte: [1 << flex::LENGTH, 0] }
            }
        }
    }

    /// The form.
    #[must_use]
    #[inline]
    pub fn form(&self) -> Form {
        self.form
    }

    /// The words of a descriptor that says in addition what [`contents`] has, the hash, and the length, which is below 16,384.
    #[must_use]
    #[inline(always)]
    pub fn words(&self, [first, second]: [u64; 2], hash: Option<u32>, length: u32) -> [u64; 4] {
        let lengths = self.byte.map(|byte| byte * u64::from(length));
        let first = self.common[0] | first | lengths[0];
        let second = self.common[1] | second | lengths[1];
        let Some(hash) = hash.map(u64::from) else { return [first, second, 0, 0] };
        match self.form {
            Form::Short | Form::Legacy => {
                [first | hash << 32, second | legacy::HASH_VALID << legacy::FLTSTAT, 0, 0]
            }
            Form::Flex(_) => [first, second | flag(true, flex::RSS_VALID) | hash << 32, 0, 0],
            Form::FlexLate => [first, second | flag(true, flex::RSS_VALID), 0, hash],
        }
    }
}

impl WriteBack {
    /// The descriptor as the card writes it, DD set: as many bytes of it as the form has. The second word must be
    /// written after the others.
    #[must_use]
    #[inline(always)]
    pub fn emit(&self, form: Form) -> [u8; SIZE] {
        match form {
            Form::Short | Form::Legacy => self.emit_legacy(),
            Form::Flex(rxdid) => {
                let hash = u64::from(self.hash.unwrap_or(0));
                words([self.flex_first(rxdid), self.flex_second() | hash << 32, 0, 0])
            }
            Form::FlexLate => {
                let hash = u64::from(self.hash.unwrap_or(0));
                words([self.flex_first(RXDID_LATE), self.flex_second(), 0, hash])
            }
        }
    }

    /// Reads a descriptor; `None` while the card has not given it back.
    #[must_use]
    #[inline]
    pub fn parse(raw: &[u8], form: Form) -> Option<Self> {
        if word(raw, 1) & DD == 0 {
            return None;
        }
        Some(match form {
            Form::Short | Form::Legacy => Self::parse_legacy(raw),
            Form::Flex(_) => Self::parse_flex(raw, (word(raw, 1) >> 32) as u32),
            Form::FlexLate => Self::parse_flex(raw, word(raw, 3) as u32),
        })
    }

    #[inline(always)]
    fn emit_legacy(&self) -> [u8; SIZE] {
        let first = u64::from(self.tag.unwrap_or(0)) << 16 | u64::from(self.hash.unwrap_or(0)) << 32;
        let found = self.checksums.unwrap_or_default();
        let cast = match self.cast {
            Cast::Unicast => 0_u64,
            Cast::Multicast => 1,
            Cast::Broadcast => 2,
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
            length: field(info, legacy::LENGTH, 14) as u16,
            end_of_packet: on(legacy::EOF),
            packet_type: field(info, legacy::PTYPE, 8) as u8,
            checksums: on(legacy::L3L4P)
                .then(|| Checksums { ip_wrong: on(legacy::IPE), l4_wrong: on(legacy::L4E) }),
            tag: on(legacy::L2TAG1P).then_some((first >> 16) as u16),
            hash: (field(info, legacy::FLTSTAT, 2) == legacy::HASH_VALID).then_some((first >> 32) as u32),
            cast: match field(info, legacy::UMBCAST, 2) {
                1 => Cast::Multicast,
                2 => Cast::Broadcast,
                _ => Cast::Unicast,
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
            length: field(first, flex::LENGTH, 14) as u16,
            end_of_packet: on(flex::EOF),
            packet_type: field(first, flex::PTYPE, 10) as u8,
            checksums: on(flex::L3L4P)
                .then(|| Checksums { ip_wrong: on(flex::IPE), l4_wrong: on(flex::L4E) }),
            tag: on(flex::L2TAG1P).then_some((info >> 16) as u16),
            hash: on(flex::RSS_VALID).then_some(hash),
            cast: Cast::Unicast,
            loopback: on(flex::LPBK),
            fcs: on(flex::CRCP),
            damaged: on(flex::RXE),
        }
    }
}
