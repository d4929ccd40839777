//! Addresses that ports had before a reset of their functions. A guest that starts again requests its addresses one by one,
//! and no other port gets them meanwhile.

use super::addresses::ExactFilter;
use crate::{PortIndex, PortSet};
use alloc::vec::Vec;
use units::MacAddress;

/// Number of addresses that are kept for a port at most. A guest could otherwise collect addresses by resets.
const KEPT_BY_PORT: usize = 32;
/// Number of ends of an epoch after which a kept address is forgotten, so it is kept for one to two epochs.
const KEPT_EPOCHS: u8 = 2;

/// Numbers of resets of the ports' functions, which wrap. A family counts them, and its tables have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResetCounts<const N: usize>([u32; N]);

impl<const N: usize> Default for ResetCounts<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> ResetCounts<N> {
    /// Counts a reset of a port's function.
    pub fn count(&mut self, port: PortIndex) {
        let count = &mut self.0[port.index::<N>()];
        *count = count.wrapping_add(1);
    }

    /// Returns the ports whose functions were reset since the counts `before`.
    pub(super) fn since(&self, before: &Self) -> PortSet {
        let ports = (0..).zip(self.0.iter().zip(&before.0));
        let reset = ports.filter(|(_, (now, before))| now != before);
        reset.fold(PortSet::NONE, |set, (n, _)| set | PortIndex::of_field(n).only())
    }
}

/// Address that is kept for a port.
#[derive(Debug, Clone, Copy)]
struct KeptAddress {
    address: MacAddress,
    /// Number of ends of an epoch until the address is forgotten.
    epochs_left: u8,
}

/// Addresses that are kept for ports after a reset. Each port has a list of its own, so a reset searches the addresses of its port
/// alone.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptAddresses {
    /// Addresses by port number, up to the last port that has had some.
    ports: Vec<Vec<KeptAddress>>,
}

impl KeptAddresses {
    /// Keeps the unicast addresses that some ports hold. An address that is kept already gets no more time: a guest could
    /// otherwise keep it for ever by resets.
    pub(super) fn keep(&mut self, held: &ExactFilter, ports: PortSet) {
        if ports.is_empty() {
            return;
        }
        for (address, holders) in held.entries().filter(|(address, _)| !address.is_group()) {
            for port in (holders & ports).iter() {
                let kept = self.of_port(port);
                if kept.len() < KEPT_BY_PORT && kept.iter().all(|kept| kept.address != address) {
                    kept.push(KeptAddress { address, epochs_left: KEPT_EPOCHS });
                }
            }
        }
    }

    /// Returns the addresses of a port.
    fn of_port(&mut self, port: PortIndex) -> &mut Vec<KeptAddress> {
        let at = usize::from(port.get());
        if self.ports.len() <= at {
            self.ports.resize_with(at + 1, Vec::new);
        }
        &mut self.ports[at]
    }

    /// Forgets the addresses that their ports have again.
    pub(super) fn forget_present(&mut self, present: &ExactFilter) {
        for (kept, n) in self.ports.iter_mut().zip(0..) {
            kept.retain(|kept| !present.is_of(kept.address, PortIndex::of_field(n)));
        }
    }

    /// Forgets an address of a port.
    pub(super) fn forget(&mut self, port: PortIndex, address: MacAddress) {
        self.of_port(port).retain(|kept| kept.address != address);
    }

    /// Forgets the addresses of a port.
    pub(super) fn release(&mut self, port: PortIndex) {
        self.of_port(port).clear();
    }

    /// Ends an epoch of the stations.
    pub(super) fn end_epoch(&mut self) {
        for kept in &mut self.ports {
            kept.iter_mut().for_each(|kept| kept.epochs_left = kept.epochs_left.saturating_sub(1));
            kept.retain(|kept| kept.epochs_left > 0);
        }
    }

    /// Returns the number of kept addresses.
    pub(super) fn len(&self) -> usize {
        self.ports.iter().map(Vec::len).sum()
    }

    /// Iterates over the kept addresses with their ports.
    pub(super) fn entries(&self) -> impl Iterator<Item = (MacAddress, PortSet)> {
        self.ports.iter().zip(0..).flat_map(|(kept, n)| {
            let only = PortIndex::of_field(n).only();
            kept.iter().map(move |kept| (kept.address, only))
        })
    }
}
