//! Hostile guests of a simulation. Such a guest writes to registers, to its rings and buffers, asks its PF for what is
//! others', resets its function, and forges frames, until its VMM ends. The others must not notice: no frame under a
//! foreign name or in a foreign VLAN, no lost frame of theirs, no request without an answer.

use super::families::{configured_mac, guest_of};
use super::frames::{self, FrameStamp};
use super::function::ReceivedChecksum;
use super::guarded::GuardedFrame;
use super::policies::PolicyModel;
use super::requests;
use crate::config::file::CardFamily;
use i82576::MacAddress;

/// Life in the stamp of a forged frame. No guest may receive one with a foreign name; one with a foreign tag only who may receive
/// the guest's other frames: a port VLAN replaces a tag.
pub(super) const FORGED: u32 = u32::MAX;
/// Registers of both families that steer rings, interrupts and requests, as offset and length in bytes (82576: VTCTRL and EITR,
/// VBMEM, V2PMAILBOX, receive and transmit rings; AVF: transmit and receive tails, interrupts, and the admin queue).
const WINDOWS: [(u32, u32); 9] = [
    (0x0, 0x40),
    (0x800, 0x40),
    (0xc40, 0x4),
    (0x1520, 0x200),
    (0x2000, 0x40),
    (0x2800, 0x140),
    (0x3400, 0x440),
    (0x5c00, 0x1000),
    (0x6c00, 0x1800),
];

/// Bytes at the begin of a guest's memory that have rings.
const RINGS: u64 = 32 << 10;
/// Bytes of a descriptor that begins with the address of its buffer.
pub(super) const DESCRIPTOR: usize = 16;
/// Address to which a PCI device of an x86 machine writes interrupts.
const MSI: u64 = 0xfee0_0000;

/// Device address and bytes of the file of memory that a hostile VMM truncates.
pub(super) const TRUNCATED: (u64, u64) = (1 << 41, 64 << 10);

/// Number in the stamp of a frame with a foreign tag.
pub(super) const TAGGED: u64 = 2;
/// Factor of the number in the stamp of a frame in another's name: the number of guests up to its sender.
pub(super) const SPOOFED: u64 = 1_000;

/// Hostile guest among the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct HostileGuest {
    pub(super) index: u16,
    pub(super) guests: u16,
    /// Number of stations at the uplink, which come after the guests.
    pub(super) stations: u16,
    pub(super) family: CardFamily,
    /// Number of changes of policies until now.
    pub(super) changes: u32,
    /// True if nothing checks its frames. It only forges frames then: frames of its rings might be others', which it may
    /// send again.
    pub(super) is_unchecked: bool,
    /// True if the guest may choose addresses that no other has.
    pub(super) has_free_mac: bool,
}

/// Numbers of misdeeds that a guest has done.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Misdeeds {
    pub(super) all: u64,
    /// Number of forged frames that the guest's driver has put into a ring.
    pub(super) forged: u64,
    /// Number of requests to the PF driver, and of messages of a hostile VMM.
    pub(super) requests: u64,
    /// Number of times that memory of a function was truncated.
    pub(super) truncations: u64,
    /// Number of times that the memory with a function's rings was unmapped.
    pub(super) unmappings: u64,
}

impl Misdeeds {
    pub(super) fn add(&mut self, other: Self) {
        self.all += other.all;
        self.forged += other.forged;
        self.requests += other.requests;
        self.truncations += other.truncations;
        self.unmappings += other.unmappings;
    }
}

/// Misdeed of a hostile guest.
#[derive(Debug)]
pub(super) enum Misdeed {
    /// Write values to registers, by their offsets.
    Registers(Vec<(u32, u32)>),
    /// Ask the PF driver in the mailbox of an 82576, by such writes.
    Mailbox(Vec<(u32, u32)>),
    /// Ask the PF driver by a virtchnl message.
    Virtchnl { operation: u32, body: Vec<u8> },
    /// Overwrite memory at an offset, for example a ring.
    Memory { offset: u64, bytes: Vec<u8> },
    /// Copy a descriptor between two offsets, with another address of its buffer.
    Replay { from: u64, to: u64, address: u64 },
    /// Send a frame with a foreign source address or VLAN.
    Forge(Vec<u8>),
    /// Map the file at [`TRUNCATED`] for the device, in the table of memory of a virtio device, and truncate it to `left` bytes.
    Truncate { left: u64 },
    /// Unmap the memory with the function's rings, or map it again.
    Unmap { again: bool },
    /// Reset the function.
    Reset,
}

impl Misdeed {
    /// Draws misdeeds of a guest with `memory` bytes at the address `base`. A guest that chooses its addresses asks for that of a
    /// station first, before it breaks its rings.
    pub(super) fn draw_all(
        random: &mut fastrand::Rng,
        guest: HostileGuest,
        memory: (u64, u64),
        count: usize,
    ) -> impl Iterator<Item = Self> {
        let chooses = guest.has_free_mac && guest.stations > 0;
        let claim = chooses.then(|| Self::claim(random, guest));
        claim.into_iter().chain((0..count).map(move |_| Self::draw(random, guest, memory))).take(count)
    }

    /// Draws a claim to the address of a station: a request of a VF, or a frame of a virtio guest, which gets the source address of
    /// its first frame.
    fn claim(random: &mut fastrand::Rng, guest: HostileGuest) -> Self {
        let station = random.u16(guest.guests..guest.guests + guest.stations);
        let mac = configured_mac(station.into());
        match guest.family {
            CardFamily::I82576 => Self::Mailbox(requests::mailbox_claim(mac)),
            CardFamily::Avf => {
                let (operation, body) = requests::virtchnl_claim(guest.index, mac);
                Self::Virtchnl { operation, body }
            }
            CardFamily::Virtio => Self::Forge(guest.spoof(station, random)),
        }
    }

    /// Draws a misdeed of a guest with `memory` bytes at the address `base`.
    fn draw(random: &mut fastrand::Rng, guest: HostileGuest, (base, memory): (u64, u64)) -> Self {
        // Rings are at the begin of the memory.
        let place = |random: &mut fastrand::Rng, bytes: usize| {
            let end = [memory, RINGS][random.usize(0..2)];
            random.u64(0..end - bytes as u64) & !7
        };
        match random.u32(0..28) {
            _ if guest.is_unchecked => Self::Forge(guest.forge(random)),
            0 => Self::Reset,
            1..6 => Self::Forge(guest.forge(random)),
            6..12 => {
                let (begin, length) = WINDOWS[random.usize(0..WINDOWS.len())];
                let offset = begin + random.u32(0..length / 4) * 4;
                Self::Registers(vec![(offset, value(random, base, memory) as u32)])
            }
            12..17 if guest.family == CardFamily::I82576 => Self::Mailbox(requests::mailbox(random, guest)),
            12..17 if guest.family == CardFamily::Avf => {
                let (operation, body) = requests::virtchnl(random, guest);
                Self::Virtchnl { operation, body }
            }
            12..20 => {
                let from = random.u64(0..RINGS / DESCRIPTOR as u64) * DESCRIPTOR as u64;
                let truncated = TRUNCATED.0 + random.u64(0..TRUNCATED.1);
                let foreign =
                    [0, base + memory, base.wrapping_sub(4096), MSI, truncated, value(random, base, memory)];
                Self::Replay {
                    from,
                    to: place(random, DESCRIPTOR),
                    address: foreign[random.usize(0..foreign.len())],
                }
            }
            20..22 => Self::Truncate { left: random.u64(0..TRUNCATED.1) & [0, u64::MAX][random.usize(0..2)] },
            22 => Self::Unmap { again: random.bool() },
            _ => {
                let bytes = (0..random.usize(1..5)).flat_map(|_| value(random, base, memory).to_le_bytes());
                let bytes: Vec<u8> = bytes.collect();
                Self::Memory { offset: place(random, bytes.len()), bytes }
            }
        }
    }
}

/// Draws a value that a descriptor or a register may hold: a small number, flags, an address of the guest's memory, or any.
fn value(random: &mut fastrand::Rng, base: u64, memory: u64) -> u64 {
    match random.u32(0..5) {
        0 => random.u64(0..300),
        1 => 1 << random.u32(0..64),
        2 => base + random.u64(0..memory),
        3 => u64::MAX << random.u32(0..64),
        _ => random.u64(..),
    }
}

impl HostileGuest {
    /// Creates a frame in the name of another guest, or with a tag.
    fn forge(self, random: &mut fastrand::Rng) -> Vec<u8> {
        match self.draw_other(random).filter(|_| random.bool()) {
            Some(other) => self.spoof(other, random),
            None if random.bool() => self.tag(random),
            None => self.guarded(random),
        }
    }

    /// Creates a frame that the guest's policy may keep back.
    fn guarded(self, random: &mut fastrand::Rng) -> Vec<u8> {
        let kind = GuardedFrame::EVERY[random.usize(0..GuardedFrame::EVERY.len())];
        let to = random.u16(0..self.guests + self.stations);
        let stamp = FrameStamp { from: self.index, to, life: FORGED, number: 0, changes: self.changes };
        let macs = (configured_mac(to.into()), configured_mac(self.index.into()));
        kind.frame(stamp, macs, random.usize(60..1400), [7, 8, 9][random.usize(0..3)])
    }

    /// Draws a guest or station whose name the guest may not have; `None` if there is none. A virtio guest that chooses its address
    /// rightly gets that of a guest which has its second one now.
    fn draw_other(self, random: &mut fastrand::Rng) -> Option<u16> {
        let all = self.guests + self.stations;
        if self.has_free_mac && self.family == CardFamily::Virtio {
            return (self.stations > 0).then(|| random.u16(self.guests..all));
        }
        (all > 1).then(|| (self.index + random.u16(1..all)) % all)
    }

    /// Creates a frame in the name of another guest or station.
    fn spoof(self, other: u16, random: &mut fastrand::Rng) -> Vec<u8> {
        self.frame(other, SPOOFED * (u64::from(self.index) + 1), random)
    }

    /// Creates a frame with a tag.
    fn tag(self, random: &mut fastrand::Rng) -> Vec<u8> {
        let vlan = [7u16, 8, 9][random.usize(0..3)];
        let mut frame = self.frame(self.index, TAGGED, random);
        // The tag is behind the addresses (802.1Q).
        frame.splice(12..12, [frames::TAG, vlan.to_be_bytes()].concat());
        frame
    }

    /// Creates a forged frame to any guest or station, with a number in its stamp.
    fn frame(self, from: u16, number: u64, random: &mut fastrand::Rng) -> Vec<u8> {
        let to = random.u16(0..self.guests + self.stations);
        let stamp = FrameStamp { from, to, life: FORGED, number, changes: self.changes };
        let mac = |guest: u16| configured_mac(guest.into());
        stamp.frame(mac(to), mac(from), random.usize(60..1400))
    }
}

/// Returns true if policy permits a guest to receive a forged frame.
pub(super) fn may_arrive(stamp: FrameStamp, to: usize, policies: &PolicyModel) -> bool {
    if let Some(kind) = GuardedFrame::of_number(stamp.number) {
        return policies.may_pass_guarded(kind, stamp.from.into(), to, stamp.changes);
    }
    match stamp.number {
        TAGGED => policies.may_pass_tagged(stamp.from.into(), to, stamp.changes),
        number => policies.may_pass_spoofed((number / SPOOFED) as usize - 1, to, stamp.changes),
    }
}

/// Returns true for a frame that a hostile guest may have sent from an address that no guest or station has: one that chooses its
/// addresses may have any such. A frame with the stamp of an honest guest is not its.
pub(super) fn may_have_any_name(frame: &[u8], hostile_lives: &[u32], policies: &PolicyModel) -> bool {
    let is_honest = |stamp: FrameStamp| {
        let hostile_life = hostile_lives.get(usize::from(stamp.from)).copied().unwrap_or(0);
        stamp.life != FORGED && stamp.life > hostile_life
    };
    let may_choose = |(vf, life): (usize, &u32)| *life > 0 && policies.has_chosen_names(vf);
    sender(frame).is_none()
        && hostile_lives.iter().enumerate().any(may_choose)
        && !matches!(FrameStamp::read(frame, ReceivedChecksum::Unknown), Ok(Some(stamp)) if is_honest(stamp))
}

/// Returns the guest that has sent a frame by its source address, and true for its second address.
pub(super) fn sender(frame: &[u8]) -> Option<(usize, bool)> {
    guest_of(MacAddress(frame.get(6..12)?.try_into().ok()?))
}
