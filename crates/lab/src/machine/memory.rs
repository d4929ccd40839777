//! Where domains' memory lies in that of the host. Left out: what is in it.

/// Bytes of memory of a guest, as far as the model gives it any.
pub(crate) const GUEST_MEMORY: u64 = 6 << 20;

/// A domain's memory: its physical address 0 is at `host`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) host: u64,
    length: u64,
}

impl Region {
    /// Guest `n`'s.
    pub(crate) const fn of(guest: usize) -> Self {
        Self { host: guest as u64 * GUEST_MEMORY, length: GUEST_MEMORY }
    }

    /// The service domain's, behind that of so many guests: as much as they have, for each port that it drives.
    pub(crate) fn of_service(guests: usize, ports: u8) -> Self {
        Self { host: guests as u64 * GUEST_MEMORY, length: u64::from(ports) * GUEST_MEMORY }
    }

    /// The host's address of a guest-physical one, if all `length` bytes are the guest's.
    pub(crate) fn at(self, address: u64, length: usize) -> Option<u64> {
        let inside = address.checked_add(length as u64)? <= self.length;
        inside.then(|| self.host + address)
    }

    /// Whether bytes of the host are all the guest's.
    pub(crate) fn holds(self, host: u64, length: usize) -> bool {
        host.checked_sub(self.host).is_some_and(|address| self.at(address, length).is_some())
    }
}
