//! Addresses that ports hold, and stations beyond the uplink, saved for the successor process and restored there.

use super::AddressClaims;
use crate::switch::ExactFilter;
use crate::switch::stations::UplinkStations;
use crate::switch::stations::saved::SavedStations;
use crate::{PortIndex, PortSet};
use units::{MacAddress, Time};

impl<const N: usize> AddressClaims<N> {
    /// Returns the unicast addresses that ports hold, each with its ports.
    pub(crate) fn held(&self) -> impl Iterator<Item = (MacAddress, PortSet)> {
        self.held.entries().filter(|(address, _)| !address.is_group())
    }

    /// Returns the number of changes of the held addresses, which wraps.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Holds addresses for ports that held them in the predecessor process, as after a reset of the ports' functions. The
    /// configuration may have changed meanwhile: a port that is gone releases nothing, and an address of policy or of the
    /// host has one holder. `present` has the addresses that the ports have in the tables. They take no room of the kept
    /// ones.
    pub(crate) fn restore_held(&mut self, addresses: &[(PortIndex, MacAddress)], present: &ExactFilter) {
        let mut held = ExactFilter::with_room(self.held.entries().count() + addresses.len());
        let mut absent = ExactFilter::with_room(addresses.len());
        self.held.entries().for_each(|(address, ports)| held.add(address, ports));
        let sound = addresses.iter().filter(|(port, address)| {
            self.guarded.has(*port)
                && address.is_valid_unicast()
                && !self.reserved.contains(address)
                && !self.is_assigned_to_other(*port, *address)
        });
        for (port, address) in sound {
            held.add(*address, port.only());
            if !present.is_of(*address, *port) {
                absent.add(*address, port.only());
            }
        }
        self.set_held(held);
        self.kept.keep(&absent, self.checked);
        self.count_absent(present);
    }

    /// Returns the stations beyond the uplink with their ages.
    pub(crate) fn save_stations(&self) -> SavedStations {
        self.stations.save(self.began)
    }

    /// Returns a number that changes when a frame changes the stations.
    pub(crate) fn station_version(&self) -> u64 {
        self.stations.version()
    }

    /// Replaces the stations by those that the predecessor process knew, with their ages.
    pub(crate) fn restore_stations(&mut self, saved: &SavedStations, now: Time) {
        (self.stations, self.began) = UplinkStations::restore(saved, now);
    }
}
