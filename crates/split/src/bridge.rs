//! A learning software switch with a table of fixed size. A new address whose set is full replaces the one
//! seen least recently.
//!
//! Addresses do not age; spanning tree and VLANs are not supported.

use alloc::vec;
use alloc::vec::Vec;
use i82576::MacAddress;

/// Index of a port of the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// Forwarding decision for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Forward the frame to this port.
    To(Port),
    /// Flood the frame to all ports except the ingress: the destination is a group address or unknown.
    Flood,
    /// Drop the frame: the destination is behind the ingress port, or the frame is too short.
    Filter,
}

/// Entries of a set of the address table.
const WAYS: usize = 4;
const SETS: usize = 128;

/// Number of MAC addresses that a bridge can store.
pub const CAPACITY: usize = WAYS * SETS;

#[derive(Debug, Clone, Copy)]
struct Entry {
    mac: MacAddress,
    port: Port,
    last_seen: u64,
}

/// Learning bridge with a table of addresses of fixed size.
#[derive(Debug)]
pub struct Bridge {
    sets: Vec<[Option<Entry>; WAYS]>,
    frames: u64,
}

impl Default for Bridge {
    fn default() -> Self {
        Self::new()
    }
}

impl Bridge {
    /// Creates a bridge with an empty table.
    #[must_use]
    pub fn new() -> Self {
        Self { sets: vec![[None; WAYS]; SETS], frames: 0 }
    }

    /// Learns the sender of a frame from port `from`, and returns the frame's forwarding decision.
    pub fn forward(&mut self, from: Port, frame: &[u8]) -> Decision {
        let address = |at: usize| frame.get(at..).and_then(MacAddress::from_slice);
        let (Some(to), Some(sender)) = (address(0), address(6)) else { return Decision::Filter };
        self.frames += 1;
        self.learn(sender, from);
        match self.find(to) {
            Some(port) if port == from => Decision::Filter,
            Some(port) => Decision::To(port),
            None => Decision::Flood,
        }
    }

    /// Records that an address is behind a port. Group addresses are ignored.
    pub fn learn(&mut self, mac: MacAddress, port: Port) {
        if !mac.is_valid_unicast() {
            return;
        }
        let last_seen = self.frames;
        let set = &mut self.sets[index(mac)];
        let known = set.iter().position(|entry| entry.is_some_and(|entry| entry.mac == mac));
        let at = known.or_else(|| set.iter().position(Option::is_none));
        let oldest = || (0..WAYS).min_by_key(|at| set[*at].map(|entry| entry.last_seen));
        if let Some(at) = at.or_else(oldest) {
            set[at] = Some(Entry { mac, port, last_seen });
        }
    }

    fn find(&self, mac: MacAddress) -> Option<Port> {
        self.sets[index(mac)].iter().flatten().find(|entry| entry.mac == mac).map(|entry| entry.port)
    }
}

fn index(mac: MacAddress) -> usize {
    let mixed = mac.0.iter().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    mixed % SETS
}

#[cfg(test)]
mod tests {
    use super::{Bridge, CAPACITY, Decision, Port};
    use alloc::vec::Vec;
    use i82576::MacAddress;

    const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 2];

    fn frame(to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
        [&to[..], &from, &[8, 0]].concat()
    }

    #[test]
    fn bridge_floods_frames_to_an_address_until_it_is_learned() {
        let mut bridge = Bridge::new();
        assert_eq!(bridge.forward(Port(1), &frame(B, A)), Decision::Flood);
        assert_eq!(bridge.forward(Port(2), &frame(A, B)), Decision::To(Port(1)));
        assert_eq!(bridge.forward(Port(1), &frame(B, A)), Decision::To(Port(2)));
    }

    #[test]
    fn bridge_does_not_return_a_frame_to_its_ingress_port() {
        let mut bridge = Bridge::new();
        bridge.learn(MacAddress(B), Port(1));
        assert_eq!(bridge.forward(Port(1), &frame(B, A)), Decision::Filter);
        assert_eq!(bridge.forward(Port(1), &[0; 11]), Decision::Filter);
    }

    #[test]
    fn bridge_learns_a_moved_address_at_its_new_port() {
        let mut bridge = Bridge::new();
        bridge.learn(MacAddress(B), Port(1));
        bridge.learn(MacAddress(B), Port(3));
        assert_eq!(bridge.forward(Port(2), &frame(B, A)), Decision::To(Port(3)));
    }

    #[test]
    fn bridge_floods_and_does_not_learn_group_addresses() {
        let mut bridge = Bridge::new();
        assert_eq!(bridge.forward(Port(1), &frame([0xff; 6], [0xff; 6])), Decision::Flood);
        assert_eq!(bridge.forward(Port(2), &frame([0xff; 6], A)), Decision::Flood);
    }

    #[test]
    fn flood_of_senders_keeps_an_active_address_in_the_bridge() {
        let mut bridge = Bridge::new();
        for n in 0..10 * CAPACITY as u32 {
            let [a, b, c, d] = n.to_be_bytes();
            bridge.forward(Port(7), &frame(B, [2, 1, a, b, c, d]));
            bridge.forward(Port(1), &frame(B, A));
        }
        assert_eq!(bridge.sets.iter().flatten().count(), CAPACITY);
        assert_eq!(bridge.forward(Port(2), &frame(A, B)), Decision::To(Port(1)));
    }
}
