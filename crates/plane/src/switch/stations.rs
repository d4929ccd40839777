//! Stations seen at the uplink: a table of fixed size, in which an address lives until it has not been seen for one to
//! two epochs. A flood of addresses evicts others, and costs neither memory nor time.

use super::addresses::number;
use alloc::boxed::Box;
use alloc::vec;
use units::MacAddress;

/// Number of sets of the table; the address selects one.
const SETS: usize = 512;
/// Number of addresses in a set.
const WAYS: usize = 4;
/// Mark of an entry that has an address.
const USED: u64 = 1 << 48;
/// Bit of an entry that tells the epoch in which the address was last seen, odd or even.
const ODD: u64 = 1 << 49;
const ADDRESS: u64 = USED - 1;

/// Addresses of stations beyond the uplink.
#[derive(Debug, Clone)]
pub(super) struct UplinkStations {
    sets: Box<[[u64; WAYS]]>,
    /// [`ODD`] in odd epochs, else 0.
    epoch: u64,
}

impl UplinkStations {
    /// Creates an empty table, without memory until the first address is noted.
    pub(super) fn new() -> Self {
        Self { sets: Box::default(), epoch: 0 }
    }

    /// Notes that the uplink has sent a frame with this source address. If the address's set is full, an address not seen
    /// in this epoch is forgotten, or else one chosen by the address.
    pub(super) fn note(&mut self, address: MacAddress) {
        if self.sets.is_empty() {
            self.sets = vec![[0; WAYS]; SETS].into_boxed_slice();
        }
        let (key, epoch) = (number(address) | USED, self.epoch);
        let (at, chosen) = place(key);
        let set = &mut self.sets[at];
        let of = |matches: &dyn Fn(u64) -> bool| set.iter().position(|entry| matches(*entry));
        let way = of(&|entry| entry & !ODD == key)
            .or_else(|| of(&|entry| entry == 0))
            .or_else(|| of(&|entry| entry & ODD != epoch))
            .unwrap_or(chosen);
        set[way] = key | epoch;
    }

    /// Returns `true` if the address was seen at the uplink in this epoch or in the one before.
    pub(super) fn have(&self, address: MacAddress) -> bool {
        let key = number(address) | USED;
        self.sets.get(place(key).0).is_some_and(|set| set.iter().any(|entry| entry & !ODD == key))
    }

    /// Begins an epoch: forgets the addresses that were not seen in the epoch that ends.
    pub(super) fn begin_epoch(&mut self) {
        let ended = self.epoch;
        self.sets.iter_mut().flatten().filter(|entry| **entry & ODD != ended).for_each(|entry| *entry = 0);
        self.epoch ^= ODD;
    }
}

/// Returns the set of an entry's address, and the way that a new address takes in a full set.
fn place(key: u64) -> (usize, usize) {
    let mixed = (key & ADDRESS).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let at = |shift: u32, of: usize| usize::try_from(mixed >> shift).unwrap_or_default() % of;
    (at(40, SETS), at(56, WAYS))
}

#[cfg(test)]
mod tests {
    use super::{SETS, UplinkStations, WAYS};
    use units::MacAddress;

    fn address(n: u32) -> MacAddress {
        let [a, b, c, d] = n.to_be_bytes();
        MacAddress([2, 9, a, b, c, d])
    }

    #[test]
    fn station_is_known_for_one_to_two_epochs() {
        let mut stations = UplinkStations::new();
        assert!(!stations.have(address(1)));
        stations.note(address(1));
        stations.begin_epoch();
        assert!(stations.have(address(1)));
        stations.note(address(1));
        stations.begin_epoch();
        assert!(stations.have(address(1)), "seen in the epoch that has ended");
        stations.begin_epoch();
        assert!(!stations.have(address(1)));
    }

    #[test]
    fn flood_of_stations_keeps_the_table_at_its_size() {
        let mut stations = UplinkStations::new();
        (0..100_000).for_each(|n| stations.note(address(n)));
        let known = (0..100_000).filter(|n| stations.have(address(*n))).count();
        assert!(known > SETS && known <= SETS * WAYS, "{known}");
        assert!(stations.have(address(99_999)), "the newest is known");
        stations.begin_epoch();
        stations.note(address(7));
        assert!(stations.have(address(7)));
    }
}
