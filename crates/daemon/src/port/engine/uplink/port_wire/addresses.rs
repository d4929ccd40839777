//! Ethernet addresses that the VFs of ports at both ends of a wire hold.

use crate::config::uplink::UplinkConfig;
use i82576::MacAddress;
use plane::guard::SharedNames;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Wires of a host on which ports hold addresses, by the wire's name. A wire without a port is dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct LinkNameRegistry(Arc<Mutex<BTreeMap<String, Weak<LinkNames>>>>);

/// Addresses that ports hold on a link.
#[derive(Debug, Default)]
struct LinkNames {
    ports: Mutex<PortAddresses>,
    /// Number of times that a port has replaced its addresses or has gone.
    releases: AtomicU64,
}

/// Addresses that ports hold on a link, by the port's number.
#[derive(Debug, Default)]
struct PortAddresses {
    held: BTreeMap<u64, BTreeSet<MacAddress>>,
    /// Number of ports that the link has had.
    ports: u64,
}

/// Addresses of a link, as one of its ports sees them. The port's own are given up when this is dropped.
#[derive(Debug)]
struct PortNames {
    link: Arc<LinkNames>,
    port: u64,
}

impl LinkNameRegistry {
    /// Adds a port to the wire of its uplink. Returns `None` for another uplink: two ports have no interface in common, and the
    /// host does not know the links behind it.
    pub(super) fn join(&self, uplink: &UplinkConfig) -> Option<Arc<dyn SharedNames>> {
        let UplinkConfig::Wire(wire) = uplink else { return None };
        let mut links = lock(&self.0);
        links.retain(|_, link| link.strong_count() > 0);
        let link = links.get(wire).and_then(Weak::upgrade).unwrap_or_default();
        links.insert(wire.clone(), Arc::downgrade(&link));
        let port = {
            let mut names = lock(&link.ports);
            names.ports += 1;
            names.ports
        };
        Some(Arc::new(PortNames { link, port }))
    }
}

impl SharedNames for PortNames {
    fn claim(&self, address: MacAddress) -> bool {
        let mut names = lock(&self.link.ports);
        if names.held.iter().any(|(port, held)| *port != self.port && held.contains(&address)) {
            return false;
        }
        names.held.entry(self.port).or_default().insert(address);
        true
    }

    fn releases(&self) -> u64 {
        self.link.releases.load(Ordering::Acquire)
    }

    fn hold(&self, addresses: &[MacAddress]) {
        // The set is built, and the one before is dropped, without the lock, which ports at the other end wait for.
        let held = addresses.iter().copied().collect();
        let before = lock(&self.link.ports).held.insert(self.port, held);
        self.link.releases.fetch_add(1, Ordering::Release);
        drop(before);
    }
}

impl Drop for PortNames {
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
    use super::LinkNameRegistry;
    use crate::config::uplink::UplinkConfig;
    use i82576::MacAddress;

    const A: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const B: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    #[test]
    fn ports_on_one_link_share_names_and_others_do_not() {
        let registry = LinkNameRegistry::default();
        let join = |uplink: UplinkConfig| registry.join(&uplink);
        let wire = |name: &str| UplinkConfig::Wire(name.to_owned());
        let [first, second, other] = ["w0", "w0", "w1"].map(|name| join(wire(name)).unwrap());
        assert!(join(UplinkConfig::None).is_none() && join(UplinkConfig::Tap("w0".to_owned())).is_none());
        first.hold(&[A]);
        assert!(first.claim(A) && !second.claim(A) && other.claim(A));
        assert!(second.claim(B) && !first.claim(B), "a claim holds the address");
        let releases = first.releases();
        second.hold(&[]);
        assert!(first.releases() > releases && first.claim(B));
        drop(first);
        assert!(second.claim(A) && second.claim(B), "a port that is gone holds nothing");
        drop(second);
        assert!(join(wire("w0")).unwrap().claim(A));
    }
}
