//! The address filters: exact ones in a hash table sized so that nearly every look-up is one probe, inexact
//! ones as the datasheet's 4096-bit tables. Left out: which pools an inexact hit is for (`tables`).

use crate::file::RegisterFile;
use i82576::MacAddress;

/// A power of two well above the 24 filters there are, so that there are always empty slots to stop at.
const SLOTS: usize = 64;

/// An address as a number: the first byte of the wire in the lowest bits, as in RAL and RAH.
const fn number(mac: MacAddress) -> u64 {
    let b = mac.0;
    u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], 0, 0])
}

/// Exact addresses and the pools of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Exact {
    /// The address in the low 48 bits, its pools above; 0 where nothing is.
    slots: [u64; SLOTS],
}

impl Exact {
    pub(super) const fn new() -> Self {
        Self { slots: [0; SLOTS] }
    }

    /// Adds pools to an address. No pools, no entry.
    pub(super) fn add(&mut self, mac: MacAddress, pools: u8) {
        if pools != 0 {
            let slot = self.slot(mac);
            self.slots[slot] |= u64::from(pools) << 48 | number(mac);
        }
    }

    /// The pools that asked for an address.
    pub(super) fn pools(&self, mac: MacAddress) -> u8 {
        (self.slots[self.slot(mac)] >> 48) as u8
    }

    /// Where an address is, or the empty slot where it would be. Ends because there are more slots than
    /// filters.
    fn slot(&self, mac: MacAddress) -> usize {
        let key = number(mac);
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % SLOTS;
        while self.slots[at] != 0 && self.slots[at] & 0xffff_ffff_ffff != key {
            at = (at + 1) % SLOTS;
        }
        at
    }
}

/// MTA or UTA: a bit for each value of twelve address bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inexact {
    words: [u32; 128],
}

impl Inexact {
    /// Takes the 128 registers that `offset` names.
    pub(super) fn load(file: &RegisterFile, offset: fn(u32) -> u32) -> Self {
        Self { words: core::array::from_fn(|word| file.get(offset(word as u32))) }
    }

    /// Whether the bit of the twelve address bits from `shift` up is set.
    pub(super) fn hit(&self, mac: MacAddress, shift: u32) -> bool {
        let hash = number(mac) >> shift & 0xfff;
        self.words[(hash >> 5) as usize] & 1 << (hash & 31) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::Exact;
    use i82576::MacAddress;
    use i82576::ids::RECEIVE_ADDRESSES;
    use proptest::prelude::{Strategy, proptest};
    use std::collections::HashMap;
    extern crate std;

    fn arbitrary_address() -> impl Strategy<Value = [u8; 6]> {
        [0u8..2, 0..2, 0..2, 0..2, 0..2, 0..3]
    }

    proptest! {
        #[test]
        fn exact_addresses_are_a_map(
            entries in proptest::collection::vec((arbitrary_address(), 1u8..), 0..RECEIVE_ADDRESSES)
        ) {
            let (mut exact, mut map) = (Exact::new(), HashMap::new());
            for (bytes, pools) in entries {
                exact.add(MacAddress(bytes), pools);
                *map.entry(bytes).or_insert(0) |= pools;
            }
            for (bytes, pools) in &map {
                assert_eq!(exact.pools(MacAddress(*bytes)), *pools);
            }
            let stranger = [9; 6];
            assert_eq!(exact.pools(MacAddress(stranger)), 0);
        }
    }
}
