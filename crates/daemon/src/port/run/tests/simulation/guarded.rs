//! Frames of hostile guests in their own names that the policy of their sender keeps back by their contents: those of a DHCP server
//! or of a router, and those with two tags. And frames to all, which may go only where the policy connects.

use super::frames::{self, FrameStamp};
use super::policy::SimulatedPolicy;
use i82576::MacAddress;

/// Offset of the ports of UDP in a frame with an IPv4 header of 20 bytes.
const PORTS: usize = 14 + 20;
/// Ports of a DHCP server and of its client (RFC 2131).
const DHCP: [u8; 4] = [0, 67, 0, 68];

/// Kind of a frame of a hostile guest in its own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardedFrame {
    /// Answer of a DHCP server.
    DhcpServer,
    /// IPv6 router advertisement.
    Router,
    /// Frame with two tags of a VF with a port VLAN, which replaces only the first.
    DoubleTag,
    /// Frame to all.
    Broadcast,
}

impl GuardedFrame {
    pub(super) const EVERY: [Self; 4] = [Self::DhcpServer, Self::Router, Self::DoubleTag, Self::Broadcast];
    /// VLAN of the first of two tags.
    pub(super) const VLAN: u16 = 7;
    /// Number in the stamp of the first kind's frames.
    const FIRST: u64 = 3;

    /// Returns the number in the stamps of such frames.
    pub(super) fn number(self) -> u64 {
        Self::FIRST + self as u64
    }

    /// Returns the kind of frames with this number in their stamps.
    pub(super) fn of_number(number: u64) -> Option<Self> {
        Self::EVERY.get(usize::try_from(number.checked_sub(Self::FIRST)?).ok()?).copied()
    }

    /// Returns true if a guest with this policy may send such a frame.
    pub(super) fn passes(self, sender: SimulatedPolicy) -> bool {
        let is_permitted = match self {
            Self::DhcpServer => !sender.has_dhcp_guard,
            Self::Router => !sender.has_router_guard,
            Self::DoubleTag => sender.vlan != 0 && sender.has_qinq,
            Self::Broadcast => true,
        };
        is_permitted && sender.passes_guard(true)
    }

    /// Creates such a frame with a stamp of this kind's number, and a second tag of a VLAN.
    pub(super) fn frame(
        self,
        stamp: FrameStamp,
        (to, from): (MacAddress, MacAddress),
        length: usize,
        vlan: u16,
    ) -> Vec<u8> {
        let stamp = FrameStamp { number: self.number(), ..stamp };
        match self {
            Self::DhcpServer => {
                let mut frame = stamp.udp_frame(to, from, length);
                frame[PORTS..PORTS + 4].copy_from_slice(&DHCP);
                frame
            }
            Self::Router => stamp.router_frame(to, from, length),
            Self::Broadcast => stamp.frame(MacAddress([0xff; 6]), from, length),
            Self::DoubleTag => {
                let mut frame = stamp.frame(to, from, length);
                // Tags are behind the addresses (802.1Q).
                frame.splice(
                    12..12,
                    [frames::TAG, Self::VLAN.to_be_bytes(), frames::TAG, vlan.to_be_bytes()].concat(),
                );
                frame
            }
        }
    }
}

#[test]
fn stamps_of_guarded_frames_are_read() {
    let stamp = FrameStamp { from: 1, to: 2, life: super::hostile::FORGED, number: 0, changes: 5 };
    for kind in GuardedFrame::EVERY {
        let mut frame = kind.frame(stamp, <_>::default(), 300, 8);
        if kind == GuardedFrame::DoubleTag {
            frame.drain(12..16);
        }
        assert_eq!(frame[0] == 0xff, kind == GuardedFrame::Broadcast);
        let read = FrameStamp::read(&frame, super::function::ReceivedChecksum::Unknown).unwrap().unwrap();
        assert_eq!(GuardedFrame::of_number(read.number), Some(kind));
    }
    assert_eq!(GuardedFrame::of_number(super::hostile::TAGGED), None);
    assert_eq!(GuardedFrame::of_number(super::hostile::SPOOFED), None);
}
