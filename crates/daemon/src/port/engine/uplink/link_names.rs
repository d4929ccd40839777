//! Ethernet addresses that the VFs of several ports hold on one link: ports at both ends of a wire, or with the same interface.

use crate::config::uplink::UplinkConfig;
use i82576::MacAddress;
use plane::guard::SharedNames;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Links of a host on which ports hold addresses. A link without a port is dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct LinkNameRegistry(Arc<Mutex<BTreeMap<LinkKey, Weak<Mutex<LinkNames>>>>>);

/// Link that several ports of a host may share.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LinkKey {
    Wire(String),
    Interface(String),
}

impl LinkKey {
    /// Returns the link of an uplink. Returns `None` if no other port of the host can be on the link, or the host cannot know.
    fn of(uplink: &UplinkConfig) -> Option<Self> {
        match uplink {
            UplinkConfig::Wire(name) => Some(Self::Wire(name.clone())),
            UplinkConfig::Interface(name) | UplinkConfig::Xdp(name, _) => Some(Self::Interface(name.clone())),
            UplinkConfig::None
            | UplinkConfig::Tap(_)
            | UplinkConfig::Macvtap(_)
            | UplinkConfig::Stream(_)
            | UplinkConfig::Replay(_) => None,
        }
    }
}

/// Addresses that ports hold on a link, by the port's number.
#[derive(Debug, Default)]
struct LinkNames {
    held: BTreeMap<u64, BTreeSet<MacAddress>>,
    /// Number of ports that the link has had.
    ports: u64,
}

/// Addresses of a link, as one of its ports sees them. The port's own are given up when this is dropped.
#[derive(Debug)]
struct PortNames {
    link: Arc<Mutex<LinkNames>>,
    port: u64,
}

impl LinkNameRegistry {
    /// Adds a port to the link of its uplink. Returns `None` if no other port can be on the link.
    pub(super) fn join(&self, uplink: &UplinkConfig) -> Option<Arc<dyn SharedNames>> {
        let key = LinkKey::of(uplink)?;
        let mut links = lock(&self.0);
        links.retain(|_, link| link.strong_count() > 0);
        let link = links.get(&key).and_then(Weak::upgrade).unwrap_or_default();
        links.insert(key, Arc::downgrade(&link));
        let port = {
            let mut names = lock(&link);
            names.ports += 1;
            names.ports
        };
        Some(Arc::new(PortNames { link, port }))
    }
}

impl SharedNames for PortNames {
    fn claim(&self, address: MacAddress) -> bool {
        let mut names = lock(&self.link);
        if names.held.iter().any(|(port, held)| *port != self.port && held.contains(&address)) {
            return false;
        }
        names.held.entry(self.port).or_default().insert(address);
        true
    }

    fn hold(&self, addresses: &[MacAddress]) {
        lock(&self.link).held.insert(self.port, addresses.iter().copied().collect());
    }
}

impl Drop for PortNames {
    fn drop(&mut self) {
        lock(&self.link).held.remove(&self.port);
    }
}

/// Locks a value whose updates are complete at each point where a thread may panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::LinkNameRegistry;
    use crate::config::uplink::{UplinkConfig, XdpMode};
    use i82576::MacAddress;

    const A: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const B: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    #[test]
    fn ports_on_one_link_share_names_and_others_do_not() {
        let registry = LinkNameRegistry::default();
        let join = |uplink: UplinkConfig| registry.join(&uplink);
        let interface = || UplinkConfig::Interface("eth0".to_owned());
        let ports = [
            interface(),
            UplinkConfig::Xdp("eth0".to_owned(), XdpMode::Native),
            UplinkConfig::Wire("eth0".to_owned()),
        ];
        let [first, second, wire] = ports.map(|uplink| join(uplink).unwrap());
        assert!(join(UplinkConfig::None).is_none() && join(UplinkConfig::Tap("eth0".to_owned())).is_none());
        first.hold(&[A]);
        assert!(first.claim(A) && !second.claim(A) && wire.claim(A));
        assert!(second.claim(B) && !first.claim(B), "a claim holds the address");
        second.hold(&[]);
        assert!(first.claim(B));
        drop(first);
        assert!(second.claim(A) && second.claim(B), "a port that is gone holds nothing");
        drop(second);
        assert!(join(interface()).unwrap().claim(A));
    }
}
