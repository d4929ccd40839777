//! Stations as a port leaves them for its successor process, and the table that the successor makes of them.

use super::{EPOCH, ODD, SETS, UplinkStations, WAYS, address_of};
use alloc::vec::Vec;
use core::fmt;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use units::{MacAddress, Time};

/// Number of stations that a table has room for.
const PLACES: usize = SETS * WAYS;

/// Stations that a port has seen at its uplink, with their ages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedStations {
    /// Key of the table's hash.
    pub key: u64,
    /// Time at which the epoch of the table began.
    pub began: Time,
    /// Address of each station, and true if it was seen in this epoch, false if in the one before.
    #[serde(deserialize_with = "deserialize_stations")]
    pub stations: Vec<(MacAddress, bool)>,
}

impl SavedStations {
    /// Returns the addresses of stations seen in the epoch, or of those seen in the one before.
    fn seen(&self, recently: bool) -> impl Iterator<Item = MacAddress> {
        let valid = self.stations.iter().filter(|(address, _)| address.is_valid_unicast());
        valid.filter(move |(_, recent)| *recent == recently).map(|(address, _)| *address)
    }
}

impl UplinkStations {
    /// Returns the stations, for [`Self::restore`] in the successor process. `began` is the time at which the epoch began.
    pub(in crate::switch) fn save(&self, began: Time) -> SavedStations {
        let entries = self.sets.iter().flatten().filter(|entry| **entry != 0);
        let stations = entries.map(|entry| (address_of(*entry), entry & ODD == self.epoch)).collect();
        SavedStations { key: self.key, began, stations }
    }

    /// Returns the number of changes by frames, which wraps. The saved stations age by their time, so an epoch's end is no change.
    pub(in crate::switch) fn version(&self) -> u64 {
        self.version
    }

    /// Creates the table of saved stations, and returns the time at which its epoch began. Epochs that have ended since then count,
    /// so no station gets more time. Without stations, or with a time to come, the table is empty and its epoch begins now.
    pub(in crate::switch) fn restore(saved: &SavedStations, now: Time) -> (Self, Time) {
        let mut table = Self { key: saved.key, ..Self::new() };
        let age = now.since(saved.began);
        if saved.began > now || age >= 2 * EPOCH {
            return (table, now);
        }
        if age >= EPOCH {
            saved.seen(true).for_each(|address| _ = table.note(address));
            table.begin_epoch();
            return (table, saved.began + EPOCH);
        }
        saved.seen(false).for_each(|address| _ = table.note(address));
        table.begin_epoch();
        saved.seen(true).for_each(|address| _ = table.note(address));
        (table, saved.began)
    }
}

/// Deserializes the stations of a table. Refuses more than the table has room for, before they take memory.
fn deserialize_stations<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(MacAddress, bool)>, D::Error> {
    from.deserialize_seq(StationsVisitor)
}

/// Visitor that reads the stations of a table.
struct StationsVisitor;

impl<'de> Visitor<'de> for StationsVisitor {
    type Value = Vec<(MacAddress, bool)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {PLACES} stations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let length = from.size_hint().unwrap_or_default();
        if length > PLACES {
            return Err(A::Error::invalid_length(length, &self));
        }
        let mut stations = Vec::with_capacity(length);
        while let Some(station) = from.next_element()? {
            if stations.len() == PLACES {
                return Err(A::Error::invalid_length(PLACES + 1, &self));
            }
            stations.push(station);
        }
        Ok(stations)
    }
}

#[cfg(test)]
mod tests {
    use super::{EPOCH, PLACES, SavedStations, UplinkStations};
    use alloc::vec::Vec;
    use core::time::Duration;
    use units::{MacAddress, Time};

    /// Time at which the saved epoch began.
    const BEGAN: Time = Time::from_micros(1_000_000_000);
    const FORMER: MacAddress = MacAddress([2, 9, 0, 0, 0, 1]);
    const RECENT: MacAddress = MacAddress([2, 9, 0, 0, 0, 2]);

    /// Returns a table with a station of the former epoch and one of the epoch that began at [`BEGAN`].
    fn table() -> UplinkStations {
        let mut table = UplinkStations::new();
        table.set_key(7);
        table.note(FORMER);
        table.begin_epoch();
        table.note(RECENT);
        table
    }

    /// Returns which of both stations a successor knows that starts this time after the epoch began, now and at the end of each
    /// later epoch.
    fn known_after(time: Duration) -> Vec<(Time, [bool; 2])> {
        let (mut table, began) = UplinkStations::restore(&table().save(BEGAN), BEGAN + time);
        let epochs = (0..3).map(|epoch| {
            let known = [FORMER, RECENT].map(|address| table.have(address));
            table.begin_epoch();
            (began + epoch * EPOCH, known)
        });
        epochs.collect()
    }

    #[test]
    fn restored_stations_have_the_ages_that_they_had() {
        let [none, recent, both] = [[false; 2], [false, true], [true; 2]];
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|epoch| BEGAN + epoch * EPOCH);
        let last = EPOCH - Duration::from_nanos(1);
        for time in [Duration::ZERO, last] {
            assert_eq!(known_after(time), [(first, both), (second, recent), (third, none)]);
        }
        for time in [EPOCH, EPOCH + last] {
            assert_eq!(known_after(time), [(second, recent), (third, none), (fourth, none)]);
        }
    }

    #[test]
    fn stations_of_five_minutes_ago_are_not_restored() {
        for time in [2 * EPOCH, Duration::from_secs(1 << 32)] {
            assert_eq!(known_after(time)[0], (BEGAN + time, [false; 2]));
        }
    }

    #[test]
    fn stations_of_a_time_to_come_are_not_restored() {
        let now = Time::from_micros(5);
        let (restored, began) = UplinkStations::restore(&table().save(BEGAN), now);
        assert!(began == now && !restored.have(FORMER) && !restored.have(RECENT));
    }

    #[test]
    fn full_table_is_restored_whole() {
        let mut full = table();
        let address = |n: u32| MacAddress([2, 8, 0, 0, (n >> 8) as u8, n as u8]);
        (0..20_000).for_each(|n| _ = full.note(address(n)));
        let saved = full.save(BEGAN);
        assert_eq!(saved.stations.len(), PLACES);
        assert_eq!(sorted(UplinkStations::restore(&saved, BEGAN).0.save(BEGAN)), sorted(saved));
    }

    /// Orders stations by address.
    fn sorted(mut saved: SavedStations) -> SavedStations {
        saved.stations.sort_unstable();
        saved
    }

    #[test]
    fn saved_groups_and_repeated_addresses_are_no_further_stations() {
        let address = MacAddress([2; 6]);
        let bad =
            [(MacAddress::BROADCAST, true), (MacAddress::ZERO, false), (address, false), (address, true)];
        let saved =
            SavedStations { began: BEGAN, stations: bad.repeat(PLACES / 4), ..SavedStations::default() };
        let (table, _) = UplinkStations::restore(&saved, BEGAN);
        assert_eq!(table.save(BEGAN).stations, [(address, true)]);
    }

    #[test]
    fn version_changes_when_a_frame_changes_the_table() {
        let mut table = table();
        let version = table.version();
        table.note(RECENT);
        assert_eq!(table.version(), version, "it was seen in this epoch before");
        table.begin_epoch();
        assert_eq!(table.version(), version, "saved stations age by their time");
        table.note(RECENT);
        assert_ne!(table.version(), version);
    }
}
