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
    port: PortIndex,
    /// Number of ends of an epoch until the address is forgotten.
    epochs_left: u8,
}

/// Addresses that are kept for ports after a reset.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptAddresses(Vec<KeptAddress>);

impl KeptAddresses {
    /// Keeps the unicast addresses that some ports hold. An address that is kept already gets no more time: a guest could
    /// otherwise keep it for ever by resets.
    pub(super) fn keep(&mut self, held: &ExactFilter, ports: PortSet) {
        for (address, holders) in held.entries().filter(|(address, _)| !address.is_group()) {
            for port in (holders & ports).iter() {
                let of_port = || self.0.iter().filter(|kept| kept.port == port);
                if of_port().count() < KEPT_BY_PORT && of_port().all(|kept| kept.address != address) {
                    self.0.push(KeptAddress { address, port, epochs_left: KEPT_EPOCHS });
                }
            }
        }
    }

    /// Forgets the addresses that their ports have again.
    pub(super) fn forget_present(&mut self, present: &ExactFilter) {
        self.0.retain(|kept| !present.is_of(kept.address, kept.port));
    }

    /// Forgets the addresses of a port.
    pub(super) fn release(&mut self, port: PortIndex) {
        self.0.retain(|kept| kept.port != port);
    }

    /// Ends an epoch of the stations.
    pub(super) fn end_epoch(&mut self) {
        self.0.iter_mut().for_each(|kept| kept.epochs_left = kept.epochs_left.saturating_sub(1));
        self.0.retain(|kept| kept.epochs_left > 0);
    }

    /// Returns the number of kept addresses.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Iterates over the kept addresses with their ports.
    pub(super) fn entries(&self) -> impl Iterator<Item = (MacAddress, PortSet)> {
        self.0.iter().map(|kept| (kept.address, kept.port.only()))
    }
}
