//! Finds ports by MAC address. Exact addresses are in a hash table sized so that nearly every look-up is one probe;
//! inexact filters are tables of 4096 bits. `tables` has the ports of an inexact match.

use crate::{PortIndex, PortSet};
use alloc::boxed::Box;
use alloc::vec;
use units::MacAddress;

/// Returns a MAC address as a number, the first byte of the wire in the lowest bits.
pub(super) const fn number(mac: MacAddress) -> u64 {
    let b = mac.0;
    u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], 0, 0])
}

/// Entry of the address hash table: an address and its ports. An entry without ports is empty.
type AddressSlot = (u64, PortSet);

/// Hash table of exact MAC addresses, with the ports of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactFilter {
    /// Entries of the address hash table: a power of two, and more than twice the addresses, so that every probe
    /// sequence meets an empty entry.
    slots: Box<[AddressSlot]>,
    /// Number of addresses that may still be added to the hash table.
    room: usize,
}

impl ExactFilter {
    /// Creates an empty table with room for `addresses` addresses.
    #[must_use]
    pub fn with_room(addresses: usize) -> Self {
        let slots = (addresses * 2 + 2).next_power_of_two();
        Self { slots: vec![(0, PortSet::NONE); slots].into_boxed_slice(), room: addresses }
    }

    /// Adds ports to an exact MAC address. Ignores an empty set of ports, and a new address beyond the table's room.
    pub fn add(&mut self, mac: MacAddress, ports: PortSet) {
        let at = self.slot(mac);
        let slot = &mut self.slots[at];
        if ports.is_empty() || slot.1.is_empty() && self.room == 0 {
            return;
        }
        self.room -= usize::from(slot.1.is_empty());
        *slot = (number(mac), slot.1 | ports);
    }

    /// Returns the ports that an exact MAC address filter selects.
    #[must_use]
    pub fn ports(&self, mac: MacAddress) -> PortSet {
        self.slots[self.slot(mac)].1
    }

    /// Returns `true` if the exact filter of a MAC address selects a port.
    #[must_use]
    pub fn is_of(&self, mac: MacAddress, port: PortIndex) -> bool {
        self.ports(mac).has(port)
    }

    /// Iterates over the addresses of the hash table with their ports.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (MacAddress, PortSet)> {
        self.slots.iter().filter(|(_, ports)| !ports.is_empty()).map(|(key, ports)| {
            let [a, b, c, d, e, f, ..] = key.to_le_bytes();
            (MacAddress([a, b, c, d, e, f]), *ports)
        })
    }

    /// Returns the index of an address's entry, or of the empty entry for it. The loop ends because there are more
    /// entries than addresses.
    fn slot(&self, mac: MacAddress) -> usize {
        let (key, last) = (number(mac), self.slots.len() - 1);
        // Fibonacci hashing: 2^64 divided by the golden ratio.
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & last;
        while !self.slots[at].1.is_empty() && self.slots[at].0 != key {
            at = (at + 1) & last;
        }
        at
    }
}

/// Inexact address filter: a bit for each value of twelve address bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashFilter {
    words: [u32; 128],
}

impl HashFilter {
    /// Creates the inexact address filter whose 32-bit word `n` is `word(n)`.
    #[must_use]
    pub fn from_words(word: impl Fn(u32) -> u32) -> Self {
        let mut words = [0; 128];
        (0..).zip(&mut words).for_each(|(n, place)| *place = word(n));
        Self { words }
    }

    /// Returns `true` if the filter's bit for the twelve address bits from `shift` on is set.
    pub(super) fn hit(&self, mac: MacAddress, shift: u32) -> bool {
        let hash = number(mac) >> shift & 0xfff;
        self.words[(hash >> 5) as usize] & 1 << (hash & 31) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::ExactFilter;
    use crate::PortSet;
    use proptest::prelude::{Strategy, proptest};
    use std::collections::HashMap;
    use units::MacAddress;
    extern crate std;

    const MOST: usize = 24;

    fn arbitrary_address() -> impl Strategy<Value = [u8; 6]> {
        [0u8..2, 0..2, 0..2, 0..2, 0..2, 0..3]
    }

    proptest! {
        #[test]
        fn each_exact_mac_address_returns_its_own_ports(
            entries in proptest::collection::vec((arbitrary_address(), 1u64..), 0..MOST)
        ) {
            let (mut exact, mut map) = (ExactFilter::with_room(MOST), HashMap::new());
            for (bytes, ports) in entries {
                exact.add(MacAddress(bytes), PortSet::new(ports));
                *map.entry(bytes).or_insert(0) |= ports;
            }
            for (bytes, ports) in &map {
                assert_eq!(exact.ports(MacAddress(*bytes)), PortSet::new(*ports));
            }
            let stranger = [9; 6];
            assert_eq!(exact.ports(MacAddress(stranger)), PortSet::NONE);
        }

        #[test]
        fn mac_addresses_beyond_the_address_tables_size_are_ignored(room in 0usize..5) {
            let mut exact = ExactFilter::with_room(room);
            for n in 0..8 {
                exact.add(MacAddress([2, 0, 0, 0, 0, n]), PortSet::new(1));
                exact.add(MacAddress([2, 0, 0, 0, 0, n]), PortSet::new(2));
            }
            let known = (0..8).filter(|n| exact.ports(MacAddress([2, 0, 0, 0, 0, *n])) == PortSet::new(3));
            assert_eq!(known.count(), room);
        }
    }
}
