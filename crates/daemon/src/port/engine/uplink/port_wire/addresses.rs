//! Ethernet addresses that the ports at the two ends of a wire hold.

use i82576::MacAddress;
use plane::guard::SharedAddresses;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Addresses that ports hold on one wire.
#[derive(Debug, Default)]
pub(super) struct WireAddresses {
    ports: Mutex<AddressesByPort>,
    /// Number of times that a port has replaced its addresses or has gone.
    releases: AtomicU64,
}

#[derive(Debug, Default)]
struct AddressesByPort {
    held: BTreeMap<u64, BTreeSet<MacAddress>>,
    /// Number of ports that the wire has had, which numbers the next one.
    count: u64,
}

impl AddressesByPort {
    /// Returns true if a port other than `than` holds an address.
    fn is_of_other(&self, than: u64, address: MacAddress) -> bool {
        self.held.iter().any(|(port, held)| *port != than && held.contains(&address))
    }
}

/// Addresses of a wire, as one of its ports sees them. The port's own are given up when this is dropped.
#[derive(Debug)]
pub(super) struct PortAddresses {
    wire: Arc<WireAddresses>,
    port: u64,
}

impl PortAddresses {
    /// Adds a port to a wire.
    pub(super) fn on(wire: &Arc<WireAddresses>) -> Self {
        let port = {
            let mut ports = lock(&wire.ports);
            ports.count += 1;
            ports.count
        };
        Self { wire: Arc::clone(wire), port }
    }
}

impl SharedAddresses for PortAddresses {
    fn claim(&self, address: MacAddress) -> bool {
        let mut ports = lock(&self.wire.ports);
        let free = !ports.is_of_other(self.port, address);
        if free {
            ports.held.entry(self.port).or_default().insert(address);
        }
        free
    }

    fn is_held_elsewhere(&self, address: MacAddress) -> bool {
        lock(&self.wire.ports).is_of_other(self.port, address)
    }

    fn releases(&self) -> u64 {
        self.wire.releases.load(Ordering::Acquire)
    }

    fn hold(&self, addresses: &[MacAddress]) {
        // The set is built, and the one before is dropped, without the lock, which the port at the other end waits for.
        let held = addresses.iter().copied().collect();
        let before = lock(&self.wire.ports).held.insert(self.port, held);
        self.wire.releases.fetch_add(1, Ordering::Release);
        drop(before);
    }
}

impl Drop for PortAddresses {
    fn drop(&mut self) {
        let before = lock(&self.wire.ports).held.remove(&self.port);
        self.wire.releases.fetch_add(1, Ordering::Release);
        drop(before);
    }
}

/// Locks a value whose updates are complete at each point where a thread may panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{PortAddresses, WireAddresses};
    use i82576::MacAddress;
    use plane::guard::SharedAddresses;
    use std::sync::Arc;

    const A: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const B: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    #[test]
    fn ports_at_both_ends_of_a_wire_share_addresses() {
        let wire = Arc::new(WireAddresses::default());
        let (first, second) = (PortAddresses::on(&wire), PortAddresses::on(&wire));
        first.hold(&[A]);
        assert!(first.claim(A) && !second.claim(A));
        assert!(second.is_held_elsewhere(A) && !first.is_held_elsewhere(A));
        assert!(!first.is_held_elsewhere(B) && !second.is_held_elsewhere(B), "the question holds nothing");
        assert!(second.claim(B) && !first.claim(B), "a claim holds the address");
        let releases = first.releases();
        second.hold(&[]);
        assert!(first.releases() > releases && first.claim(B));
        drop(first);
        assert!(second.claim(A) && second.claim(B), "a port that is gone holds nothing");
        drop(second);
        assert!(PortAddresses::on(&wire).claim(A));
    }
}
