//! Stations seen at the uplink: a table of fixed size, in which an address lives until it has not been seen for one to
//! two epochs. A flood of addresses evicts others, and costs neither memory nor time. A key decides which addresses share a
//! set, so that a station outside cannot choose a few addresses that evict another.

pub(super) mod saved;

use super::addresses::number;
use alloc::boxed::Box;
use alloc::vec;
use core::time::Duration;
use units::MacAddress;

/// Length of an epoch: a station is forgotten when it has not been seen for one to two epochs.
pub(super) const EPOCH: Duration = Duration::from_secs(150);
/// Number of sets of the table; the address selects one.
const SETS: usize = 512;
/// Number of addresses in a set.
const WAYS: usize = 4;
/// Mark of an entry that has an address.
const USED: u64 = 1 << 48;
/// Bit of an entry that tells the epoch in which the address was last seen, odd or even.
const ODD: u64 = 1 << 49;

/// Addresses of stations beyond the uplink.
#[derive(Debug, Clone)]
pub(super) struct UplinkStations {
    sets: Box<[[u64; WAYS]]>,
    /// [`ODD`] in odd epochs, else 0.
    epoch: u64,
    /// Key of the hash that selects an address's set.
    key: u64,
    /// Number of changes by frames, which wraps.
    version: u64,
}

impl UplinkStations {
    /// Creates an empty table, without memory until the first address is noted.
    pub(super) fn new() -> Self {
        Self { sets: Box::default(), epoch: 0, key: 0, version: 0 }
    }

    /// Sets the key of the table's hash. Another key than before empties the table.
    pub(super) fn set_key(&mut self, key: u64) {
        if key != self.key {
            *self = Self { key, version: self.version.wrapping_add(1), ..Self::new() };
        }
    }

    /// Notes that the uplink has sent a frame with this source address. If the address's set is full, an address not seen
    /// in this epoch is forgotten, or else one chosen by the address: the result.
    pub(super) fn note(&mut self, address: MacAddress) -> Option<MacAddress> {
        if self.sets.is_empty() {
            self.sets = vec![[0; WAYS]; SETS].into_boxed_slice();
        }
        let (noted, epoch) = (number(address) | USED, self.epoch);
        let (at, chosen) = place(number(address), self.key);
        let set = &mut self.sets[at];
        let of = |matches: &dyn Fn(u64) -> bool| set.iter().position(|entry| matches(*entry));
        let way = of(&|entry| entry & !ODD == noted)
            .or_else(|| of(&|entry| entry == 0))
            .or_else(|| of(&|entry| entry & ODD != epoch))
            .unwrap_or(chosen);
        let before = core::mem::replace(&mut set[way], noted | epoch);
        self.version = self.version.wrapping_add(u64::from(before != noted | epoch));
        (before != 0 && before & !ODD != noted).then(|| address_of(before))
    }

    /// Returns `true` if the address was seen at the uplink in this epoch or in the one before.
    pub(super) fn have(&self, address: MacAddress) -> bool {
        let noted = number(address) | USED;
        let set = self.sets.get(place(number(address), self.key).0);
        set.is_some_and(|set| set.iter().any(|entry| entry & !ODD == noted))
    }

    /// Begins an epoch: forgets the addresses that were not seen in the epoch that ends.
    pub(super) fn begin_epoch(&mut self) {
        let ended = self.epoch;
        self.sets.iter_mut().flatten().filter(|entry| **entry & ODD != ended).for_each(|entry| *entry = 0);
        self.epoch ^= ODD;
    }
}

/// Returns the set of an address, and the way that a new address takes in a full set. The hash is the folded product of the
/// address and two halves of a key.
fn place(address: u64, key: u64) -> (usize, usize) {
    let (first, second) = (address ^ key, key.rotate_left(32) | 1);
    let high = ((u128::from(first) * u128::from(second)) >> 64) as u64;
    let mixed = (first.wrapping_mul(second) ^ high).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let at = |shift: u32, of: usize| usize::try_from(mixed >> shift).unwrap_or_default() % of;
    (at(40, SETS), at(56, WAYS))
}

/// Returns the address of an entry.
fn address_of(entry: u64) -> MacAddress {
    let [a, b, c, d, e, f, ..] = entry.to_le_bytes();
    MacAddress([a, b, c, d, e, f])
}

#[cfg(test)]
mod tests {
    use super::{SETS, UplinkStations, WAYS, number, place};
    use alloc::vec::Vec;
    use units::MacAddress;

    /// Random keys.
    const KEYS: [u64; 4] =
        [0x6c07_8965_d5f2_1e3b, 0x1b87_3593_cc9e_2d51, 0xb492_b66f_be98_f273, 0x2545_f491_4f6c_dd1d];

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
    fn addresses_that_evict_a_station_depend_on_the_key() {
        let evicts = |key, n| place(number(address(n)), key).0 == place(number(address(0)), key).0;
        let chosen: Vec<u32> = (1..100_000).filter(|n| evicts(KEYS[0], *n)).take(64).collect();
        for key in &KEYS[1..] {
            let still = chosen.iter().filter(|n| evicts(*key, **n)).count();
            assert!(still < 6, "{still} of {} addresses share a set with key {key:x}", chosen.len());
        }
    }

    #[test]
    fn another_key_empties_the_table() {
        let mut stations = UplinkStations::new();
        stations.note(address(1));
        stations.set_key(0);
        assert!(stations.have(address(1)), "the same key");
        stations.set_key(5);
        assert!(!stations.have(address(1)));
    }

    #[test]
    fn full_set_reports_the_evicted_station() {
        let mut stations = UplinkStations::new();
        let lost: Vec<_> = (0..10_000).filter_map(|n| stations.note(address(n))).collect();
        assert!(!lost.is_empty() && lost.iter().all(|lost| *lost != address(9_999)));
        assert_eq!((0..10_000).filter(|n| stations.have(address(*n))).count() + lost.len(), 10_000);
    }

    #[test]
    fn flood_of_stations_keeps_the_table_at_its_size() {
        let mut stations = UplinkStations::new();
        (0..100_000).for_each(|n| _ = stations.note(address(n)));
        let known = (0..100_000).filter(|n| stations.have(address(*n))).count();
        assert!(known > SETS && known <= SETS * WAYS, "{known}");
        assert!(stations.have(address(99_999)), "the newest is known");
        stations.begin_epoch();
        stations.note(address(7));
        assert!(stations.have(address(7)));
    }
}
