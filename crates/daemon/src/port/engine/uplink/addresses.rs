//! Ethernet addresses that ports hold on a link that they share: a wire, or an interface of the host to which their uplinks
//! belong.

use i82576::MacAddress;
use plane::guard::SharedAddresses;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Addresses that ports hold on one link.
#[derive(Debug, Default)]
pub(super) struct LinkAddresses {
    ports: Mutex<AddressesByPort>,
    /// Number of times that a port has replaced its addresses or has gone.
    releases: AtomicU64,
}

#[derive(Debug, Default)]
struct AddressesByPort {
    held: BTreeMap<u64, BTreeSet<MacAddress>>,
    /// Number of ports that the link has had, which numbers the next one.
    count: u64,
}

impl AddressesByPort {
    /// Returns true if a port other than `than` holds an address.
    fn is_of_other(&self, than: u64, address: MacAddress) -> bool {
        self.held.iter().any(|(port, held)| *port != than && held.contains(&address))
    }
}

/// Addresses of a link, as one of its ports sees them. The port's own are given up when this is dropped.
#[derive(Debug)]
pub(super) struct PortAddresses {
    link: Arc<LinkAddresses>,
    port: u64,
}

impl PortAddresses {
    /// Adds a port to a link.
    pub(super) fn on(link: &Arc<LinkAddresses>) -> Self {
        let port = {
            let mut ports = lock(&link.ports);
            ports.count += 1;
            ports.count
        };
        Self { link: Arc::clone(link), port }
    }
}

/// Interface of the host whose link uplinks may share: the bridge of their taps, or the interface below their macvtaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ParentInterface {
    /// Inode of the interface's network namespace: each namespace has indices of its own.
    pub(super) namespace: u64,
    pub(super) index: u32,
}

/// Addresses that the ports of a host hold, by the interface whose link their uplinks share. A link without a port is dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParentAddressRegistry(Arc<Mutex<BTreeMap<ParentInterface, Weak<LinkAddresses>>>>);

impl ParentAddressRegistry {
    /// Adds a port to the link of an interface.
    pub(super) fn join(&self, parent: ParentInterface) -> PortAddresses {
        let mut links = lock(&self.0);
        links.retain(|_, link| link.strong_count() > 0);
        let link = links.get(&parent).and_then(Weak::upgrade).unwrap_or_default();
        links.insert(parent, Arc::downgrade(&link));
        PortAddresses::on(&link)
    }
}

impl SharedAddresses for PortAddresses {
    fn claim(&self, address: MacAddress) -> bool {
        let mut ports = lock(&self.link.ports);
        let free = !ports.is_of_other(self.port, address);
        if free {
            ports.held.entry(self.port).or_default().insert(address);
        }
        free
    }

    fn is_held_elsewhere(&self, address: MacAddress) -> bool {
        lock(&self.link.ports).is_of_other(self.port, address)
    }

    fn releases(&self) -> u64 {
        self.link.releases.load(Ordering::Acquire)
    }

    fn hold(&self, addresses: &[MacAddress]) {
        // The set is built, and the one before is dropped, without the lock, which other ports wait for.
        let held = addresses.iter().copied().collect();
        let before = lock(&self.link.ports).held.insert(self.port, held);
        self.link.releases.fetch_add(1, Ordering::Release);
        drop(before);
    }
}

impl Drop for PortAddresses {
    fn drop(&mut self) {
        let before = lock(&self.link.ports).held.remove(&self.port);
        self.link.releases.fetch_add(1, Ordering::Release);
        drop(before);
    }
}

/// Locks a value whose updates are complete at each point where a thread may panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{LinkAddresses, ParentAddressRegistry, ParentInterface, PortAddresses};
    use i82576::MacAddress;
    use plane::guard::SharedAddresses;
    use std::sync::Arc;

    const A: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const B: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    #[test]
    fn ports_at_both_ends_of_a_wire_share_addresses() {
        let wire = Arc::new(LinkAddresses::default());
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

    #[test]
    fn uplinks_share_addresses_by_parent_and_namespace() {
        let parents = ParentAddressRegistry::default();
        let [bridge, other, elsewhere] =
            [(1, 7), (1, 8), (2, 7)].map(|(namespace, index)| ParentInterface { namespace, index });
        let first = parents.join(bridge);
        first.hold(&[A]);
        assert!(!parents.join(bridge).claim(A), "another uplink on the same bridge");
        assert!(parents.join(other).claim(A) && parents.join(elsewhere).claim(A));
        drop(first);
        assert!(parents.join(bridge).claim(A), "the port's uplink has left the bridge");
        let _last = parents.join(other);
        assert_eq!(parents.0.lock().unwrap().len(), 1, "interfaces without a port are forgotten");
    }
}
