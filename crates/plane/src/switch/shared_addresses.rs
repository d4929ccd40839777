//! Addresses that planes on one link share: a port of one gets no address that a port of another holds.

use core::fmt::Debug;
use units::MacAddress;

/// Addresses that the planes on one link hold, as one of these planes sees them.
pub trait SharedAddresses: Debug + Send + Sync {
    /// Claims an address for this plane. Returns `false` if another plane holds it.
    fn claim(&self, address: MacAddress) -> bool;

    /// Returns `true` if another plane holds an address. Claims nothing.
    fn is_held_elsewhere(&self, address: MacAddress) -> bool;

    /// Returns a number that grows whenever a plane gives addresses up. Takes no lock.
    fn releases(&self) -> u64;

    /// Replaces the addresses that this plane holds, whatever other planes hold.
    fn hold(&self, addresses: &[MacAddress]);
}
