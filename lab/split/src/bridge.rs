//! A learning software switch with an address table of fixed size. A new address whose set is full replaces
//! the address seen least recently.
//!
//! Addresses do not age; spanning tree and VLANs are not supported.

use alloc::vec;
use alloc::vec::Vec;
use i82576::MacAddress;

/// Index of a port of the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BridgePort(pub u16);

/// Decision of the bridge on a frame: forward, flood or drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BridgeDecision {
    /// Decision: forward the frame to this port.
    To(BridgePort),
    /// Decision: flood the frame to all ports except the ingress, since the destination is a group address or
    /// unknown.
    Flood,
    /// Decision: drop the frame, since the destination is behind the ingress port, or the frame is too short.
    Filter,
}

/// Number of addresses in a set of the bridge's address table.
const WAYS: usize = 4;
const SETS: usize = 128;

/// Number of MAC addresses that a bridge can store.
pub const CAPACITY: usize = WAYS * SETS;

#[derive(Debug, Clone, Copy)]
struct LearnedAddress {
    mac: MacAddress,
    port: BridgePort,
    last_seen: u64,
}

/// Learning bridge with an address table of fixed size.
#[derive(Debug)]
pub struct LearningBridge {
    sets: Vec<[Option<LearnedAddress>; WAYS]>,
    frames: u64,
}

impl Default for LearningBridge {
    fn default() -> Self {
        Self::new()
    }
}

impl LearningBridge {
    /// Creates a bridge with an empty address table.
    #[must_use]
    pub fn new() -> Self {
        Self { sets: vec![[None; WAYS]; SETS], frames: 0 }
    }

    /// Learns a frame's source address at its ingress port `from`, and returns the bridge's decision on the
    /// frame.
    pub fn forward(&mut self, from: BridgePort, frame: &[u8]) -> BridgeDecision {
        let address = |at: usize| frame.get(at..).and_then(MacAddress::from_slice);
        let (Some(to), Some(sender)) = (address(0), address(6)) else { return BridgeDecision::Filter };
        self.frames += 1;
        self.learn(sender, from);
        match self.find(to) {
            Some(port) if port == from => BridgeDecision::Filter,
            Some(port) => BridgeDecision::To(port),
            None => BridgeDecision::Flood,
        }
    }

    /// Records that a MAC address is behind a port. Group addresses are ignored.
    pub fn learn(&mut self, mac: MacAddress, port: BridgePort) {
        if !mac.is_valid_unicast() {
            return;
        }
        let last_seen = self.frames;
        let set = &mut self.sets[index(mac)];
        let known = set.iter().position(|entry| entry.is_some_and(|entry| entry.mac == mac));
        let at = known.or_else(|| set.iter().position(Option::is_none));
        let oldest = || (0..WAYS).min_by_key(|at| set[*at].map(|entry| entry.last_seen));
        if let Some(at) = at.or_else(oldest) {
            set[at] = Some(LearnedAddress { mac, port, last_seen });
        }
    }

    fn find(&self, mac: MacAddress) -> Option<BridgePort> {
        self.sets[index(mac)].iter().flatten().find(|entry| entry.mac == mac).map(|entry| entry.port)
    }
}

fn index(mac: MacAddress) -> usize {
    let mixed = mac.0.iter().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    mixed % SETS
}

#[cfg(test)]
mod tests {
    use super::{BridgeDecision, BridgePort, CAPACITY, LearningBridge};
    use alloc::vec::Vec;
    use i82576::MacAddress;

    const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 2];

    fn frame(to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
        [&to[..], &from, &[8, 0]].concat()
    }

    #[test]
    fn bridge_floods_frames_to_an_address_until_it_is_learned() {
        let mut bridge = LearningBridge::new();
        assert_eq!(bridge.forward(BridgePort(1), &frame(B, A)), BridgeDecision::Flood);
        assert_eq!(bridge.forward(BridgePort(2), &frame(A, B)), BridgeDecision::To(BridgePort(1)));
        assert_eq!(bridge.forward(BridgePort(1), &frame(B, A)), BridgeDecision::To(BridgePort(2)));
    }

    #[test]
    fn bridge_does_not_return_a_frame_to_its_ingress_port() {
        let mut bridge = LearningBridge::new();
        bridge.learn(MacAddress(B), BridgePort(1));
        assert_eq!(bridge.forward(BridgePort(1), &frame(B, A)), BridgeDecision::Filter);
        assert_eq!(bridge.forward(BridgePort(1), &[0; 11]), BridgeDecision::Filter);
    }

    #[test]
    fn bridge_learns_a_moved_address_at_its_new_port() {
        let mut bridge = LearningBridge::new();
        bridge.learn(MacAddress(B), BridgePort(1));
        bridge.learn(MacAddress(B), BridgePort(3));
        assert_eq!(bridge.forward(BridgePort(2), &frame(B, A)), BridgeDecision::To(BridgePort(3)));
    }

    #[test]
    fn bridge_floods_and_does_not_learn_group_addresses() {
        let mut bridge = LearningBridge::new();
        assert_eq!(bridge.forward(BridgePort(1), &frame([0xff; 6], [0xff; 6])), BridgeDecision::Flood);
        assert_eq!(bridge.forward(BridgePort(2), &frame([0xff; 6], A)), BridgeDecision::Flood);
    }

    #[test]
    fn flood_of_senders_keeps_an_active_address_in_the_bridge() {
        let mut bridge = LearningBridge::new();
        for n in 0..10 * CAPACITY as u32 {
            let [a, b, c, d] = n.to_be_bytes();
            bridge.forward(BridgePort(7), &frame(B, [2, 1, a, b, c, d]));
            bridge.forward(BridgePort(1), &frame(B, A));
        }
        assert_eq!(bridge.sets.iter().flatten().count(), CAPACITY);
        assert_eq!(bridge.forward(BridgePort(2), &frame(A, B)), BridgeDecision::To(BridgePort(1)));
    }
}
