//! A packet that waits for its VF's rate between two of its segments, on the way to another process of the host. Its chain has been
//! returned to the driver, so the packet's bytes are nowhere else.

use crate::card::Nic;
use crate::limits::MAX_PAIRS;
use crate::packet::PacketOffloadRequest;
use crate::transmit::LONGEST_PACKET;
use alloc::vec::Vec;
use offload::segment::TcpFlagMasks;
use rings::{CopiedPacket, PacketOffloads, PausedPacketMemory};

/// Packet of a VF that is paused between two of its segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedPacket {
    /// Queue pair of the packet's transmit ring.
    pub queue: u8,
    /// Number of segments that have left, at least 1.
    pub sent: u32,
    /// Number of payload bytes per segment.
    pub segment_size: u16,
    /// Bytes of the whole packet, from the Ethernet header on.
    pub bytes: Vec<u8>,
}

impl PausedPacket {
    /// Returns the packet as the card keeps it, or `None` if no ring can have it: parts of it must have left, and others not.
    fn memory(&self) -> Option<PausedPacketMemory<PacketOffloadRequest>> {
        let Self { queue, sent, segment_size, bytes } = self;
        let orders = PacketOffloadRequest::segmented(bytes, *segment_size)?;
        let is_sound = usize::from(*queue) < MAX_PAIRS && bytes.len() <= LONGEST_PACKET;
        let cut = orders.cut(bytes, bytes.len(), TcpFlagMasks::DEFAULT).filter(|_| is_sound)?;
        let packet = CopiedPacket { orders, sent: *sent };
        (1..cut.count()).contains(sent).then(|| PausedPacketMemory::restore(packet, *queue, bytes))
    }
}

impl Nic {
    /// Returns the packet of a VF that is paused between two of its segments.
    #[must_use]
    pub fn paused_packet(&self, vf: u8) -> Option<PausedPacket> {
        let (packet, queue, bytes) = self.devices.get(usize::from(vf))?.held.kept()?;
        let segment_size = packet.orders.mss()?;
        Some(PausedPacket { queue, sent: packet.sent, segment_size, bytes: bytes.to_vec() })
    }

    /// Continues a packet that was paused in another process: its other segments leave after its ring has started. Returns false if
    /// the VF cannot have such a packet, which is then dropped.
    pub fn continue_packet(&mut self, vf: u8, packet: &PausedPacket) -> bool {
        let Some(device) = self.devices.get_mut(usize::from(vf)) else { return false };
        match packet.memory().filter(|_| device.held.is_empty()) {
            Some(memory) => device.held = memory,
            None => {
                self.note_dropped(vf);
                return false;
            }
        }
        true
    }
}
