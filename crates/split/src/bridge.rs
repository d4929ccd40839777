//! A switch in software: it learns who is behind which port and asks nobody. Its table has so many places and no
//! more; an address that finds its places taken has the one forgotten that was heard of longest ago.
//!
//! Left out: time (addresses do not age), spanning tree, VLANs.

use alloc::vec;
use alloc::vec::Vec;
use i82576::MacAddress;

/// A port of the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// Where a frame goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// To this port.
    To(Port),
    /// To every port but the one it came from: a group address, or one not heard of.
    Flood,
    /// Nowhere: it came from where it would go, or is no frame.
    Filter,
}

/// Places that an address can be in.
const WAYS: usize = 4;
const SETS: usize = 128;

/// Addresses that a bridge can know.
pub const CAPACITY: usize = WAYS * SETS;

#[derive(Debug, Clone, Copy)]
struct Entry {
    mac: MacAddress,
    port: Port,
    heard: u64,
}

/// A learning bridge.
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
    /// A bridge that knows nobody.
    #[must_use]
    pub fn new() -> Self {
        Self { sets: vec![[None; WAYS]; SETS], frames: 0 }
    }

    /// A frame comes in at a port: learns where its sender is, and says where it goes.
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

    /// Notes that an address is behind a port. Group addresses are nobody's.
    pub fn learn(&mut self, mac: MacAddress, port: Port) {
        if !mac.is_valid_unicast() {
            return;
        }
        let heard = self.frames;
        let set = &mut self.sets[index(mac)];
        let known = set.iter().position(|place| place.is_some_and(|entry| entry.mac == mac));
        let at = known.or_else(|| set.iter().position(Option::is_none));
        let oldest = || (0..WAYS).min_by_key(|at| set[*at].map(|entry| entry.heard));
        if let Some(at) = at.or_else(oldest) {
            set[at] = Some(Entry { mac, port, heard });
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
    fn a_stranger_is_asked_for_everywhere_and_found_once_it_has_spoken() {
        let mut bridge = Bridge::new();
        assert_eq!(bridge.forward(Port(1), &frame(B, A)), Decision::Flood);
        assert_eq!(bridge.forward(Port(2), &frame(A, B)), Decision::To(Port(1)));
        assert_eq!(bridge.forward(Port(1), &frame(B, A)), Decision::To(Port(2)));
    }

    #[test]
    fn a_frame_does_not_go_back_where_it_came_from() {
        let mut bridge = Bridge::new();
        bridge.learn(MacAddress(B), Port(1));
        assert_eq!(bridge.forward(Port(1), &frame(B, A)), Decision::Filter);
        assert_eq!(bridge.forward(Port(1), &[0; 11]), Decision::Filter);
    }

    #[test]
    fn who_moves_is_found_at_the_new_port() {
        let mut bridge = Bridge::new();
        bridge.learn(MacAddress(B), Port(1));
        bridge.learn(MacAddress(B), Port(3));
        assert_eq!(bridge.forward(Port(2), &frame(B, A)), Decision::To(Port(3)));
    }

    #[test]
    fn group_addresses_go_everywhere_and_are_nobodys() {
        let mut bridge = Bridge::new();
        assert_eq!(bridge.forward(Port(1), &frame([0xff; 6], [0xff; 6])), Decision::Flood);
        assert_eq!(bridge.forward(Port(2), &frame([0xff; 6], A)), Decision::Flood);
    }

    #[test]
    fn a_flood_of_senders_does_not_grow_the_table_nor_push_out_who_keeps_speaking() {
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
