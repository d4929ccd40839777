//! The decision for one frame: pool selection (datasheet 7.10.3.3 and 7.10.3.4), transmit switching and
//! anti-spoofing (7.10.3.9). Left out: whether a queue has room.

use super::tables::Tables;
use i82576::MacAddress;

/// Where a frame comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The uplink.
    Wire,
    /// A pool's transmit queue, 0..=7.
    Pool(u8),
}

impl Source {
    /// The sender's bit; none for the wire.
    const fn bit(self) -> u8 {
        match self {
            Source::Wire => 0,
            Source::Pool(pool) => 1 << (pool & 7),
        }
    }
}

/// What the switch looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Destination address.
    pub dst: MacAddress,
    /// Source address.
    pub src: MacAddress,
    /// The outermost VLAN tag, whether it is in the frame or about to be inserted.
    pub vlan: Option<u16>,
    /// Bytes, tag included, frame check sequence excluded.
    pub length: usize,
    /// Where it comes from.
    pub source: Source,
}

/// Why a frame goes nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A VF may not send to 01:80:c2:00:00:00 to 0f: pause, spanning tree, LACP are the port's own, and the PF's.
    LinkControl,
    /// The source address is not the sender's.
    SourceSpoofed,
    /// The sender is not in the frame's VLAN.
    VlanSpoofed,
    /// No filter wants it.
    Unwanted,
    /// Only the sender itself wants it.
    OnlySender,
    /// Whoever wants it may not receive.
    Disabled,
    /// It is too long for whoever wants it.
    TooLong,
}

/// Who gets a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decision {
    /// A bit a pool.
    pub pools: u8,
    /// It goes to the uplink.
    pub wire: bool,
    /// Receive options are those of replicated frames: a broadcast or multicast while replication is on.
    pub replicated: bool,
    /// No exact filter knows its destination, nor is it a broadcast: software has to look who it is for.
    pub inexact: bool,
    /// Why it goes nowhere; `None` exactly if it goes somewhere.
    pub dropped: Option<Reason>,
}

/// The pools whose filters know a destination.
struct Match {
    pools: u8,
    /// A receive address names it, or it is a broadcast.
    exact: bool,
}

impl Match {
    /// Pools that a filter with room for doubt names.
    const fn inexact(pools: u8) -> Self {
        Self { pools, exact: false }
    }
}

impl Tables {
    /// Decides who gets a frame.
    #[must_use]
    #[inline]
    pub fn decide(&self, frame: &Frame) -> Decision {
        let sender = frame.source.bit();
        if let Some(reason) = self.violation(frame, sender) {
            return Decision { dropped: Some(reason), ..Decision::default() };
        }
        let from_wire = sender == 0;
        let switched = from_wire || self.loopback;
        let matched = self.matching(frame.dst, from_wire);
        let wanted = if switched { matched.pools & self.in_vlan(frame.vlan) } else { 0 };
        // A station that is certainly here is not looked for outside as well.
        let stays = matched.exact && wanted != 0 && !frame.dst.is_group() || self.is_local_vlan(frame.vlan);
        let itself = sender & !self.own_loopback;
        let others = wanted & !itself;
        let enabled = others & self.enabled;
        let fitting = self.fitting(enabled, frame.length, frame.vlan.is_some());
        let mut pools = if self.replicate { fitting } else { fitting & fitting.wrapping_neg() };
        let wire = !(from_wire || stays);
        if self.mirrors.any() {
            let copies = self.mirrors.copies(from_wire, pools, wire, frame.vlan) & self.enabled & !itself;
            pools |= self.fitting(copies, frame.length, frame.vlan.is_some());
        }
        let dropped = match (pools, wire) {
            (0, false) if wanted == 0 => Some(Reason::Unwanted),
            (0, false) if others == 0 => Some(Reason::OnlySender),
            (0, false) if enabled == 0 => Some(Reason::Disabled),
            (0, false) => Some(Reason::TooLong),
            _ => None,
        };
        let replicated = self.replicate && frame.dst.is_group();
        Decision { pools, wire, replicated, inexact: !matched.exact, dropped }
    }

    /// What a pool must not send. The wire, and a port that is not shared, may send anything.
    fn violation(&self, frame: &Frame, sender: u8) -> Option<Reason> {
        if sender == 0 || !self.virtualised {
            return None;
        }
        let [head @ .., last] = frame.dst.0;
        if self.vfs & sender != 0 && head == [0x01, 0x80, 0xc2, 0, 0] && last < 0x10 {
            return Some(Reason::LinkControl);
        }
        if self.check_source & sender != 0 && self.exact.pools(frame.src) & sender == 0 {
            return Some(Reason::SourceSpoofed);
        }
        let outside = frame.vlan.is_some_and(|tag| self.vlans.members(tag) & sender == 0);
        (self.check_vlan & sender != 0 && outside).then_some(Reason::VlanSpoofed)
    }

    fn matching(&self, dst: MacAddress, from_wire: bool) -> Match {
        if self.ignore_mac {
            return Match::inexact(self.all);
        }
        if dst.is_group() {
            return self.matching_group(dst);
        }
        let exact = self.exact.pools(dst);
        if exact != 0 {
            return Match { pools: exact, exact: true };
        }
        match self.matching_inexactly(dst) {
            0 if from_wire => Match::inexact(self.default_pools),
            hits => Match::inexact(hits),
        }
    }

    /// The pools of a unicast hash hit.
    fn matching_inexactly(&self, dst: MacAddress) -> u8 {
        if self.unicast.hit(dst, self.hash_shift) { self.unicast_hits } else { 0 }
    }

    /// Whether a filter knows a unicast address.
    pub(super) fn knows(&self, dst: MacAddress) -> bool {
        self.exact.pools(dst) != 0 || self.matching_inexactly(dst) != 0
    }

    /// Broadcast and multicast. Where frames are not replicated, only an exact filter finds the one pool that
    /// gets the frame; all others are for the default pool's software to hand on (7.10.3.4).
    fn matching_group(&self, dst: MacAddress) -> Match {
        let broadcast = dst.is_broadcast();
        let exact = if broadcast { 0 } else { self.exact.pools(dst) };
        let hit = exact == 0 && !broadcast && self.multicast.hit(dst, self.hash_shift);
        let pools = match (self.alone, broadcast) {
            (true, _) if exact != 0 => exact,
            (true, _) => self.default_pools,
            (false, true) => self.broadcast,
            (false, false) => exact | self.every_multicast | if hit { self.multicast_hits } else { 0 },
        };
        Match { pools, exact: broadcast || exact != 0 }
    }

    /// The pools that the VLAN filter lets a frame through to.
    fn in_vlan(&self, vlan: Option<u16>) -> u8 {
        match vlan {
            _ if !self.filter_vlans => self.all,
            None => self.untagged,
            Some(tag) if !self.vlans.is_accepted(tag) || tag & self.canonical.0 != self.canonical.1 => 0,
            Some(tag) if self.virtualised => self.vlans.members(tag),
            Some(_) => self.all,
        }
    }

    fn is_local_vlan(&self, vlan: Option<u16>) -> bool {
        self.virtualised && vlan.is_some_and(|tag| self.vlans.is_local(tag))
    }
}
