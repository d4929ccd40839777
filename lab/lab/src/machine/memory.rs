//! Layout of the domains' memory in the host's memory.

/// Bytes of a guest's memory that the model uses.
pub(crate) const GUEST_MEMORY: u64 = 6 << 20;

/// Region of the host's memory that is a domain's memory. The domain's physical address 0 is at `host`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DomainMemoryRegion {
    pub(crate) host: u64,
    length: u64,
}

impl DomainMemoryRegion {
    /// Returns the memory region of the guest with index `guest`.
    pub(crate) const fn of(guest: usize) -> Self {
        Self { host: guest as u64 * GUEST_MEMORY, length: GUEST_MEMORY }
    }

    /// Returns the service domain's memory region, behind those of `guests` guests. The region has a guest's
    /// size for each port that the service domain drives.
    pub(crate) fn of_service(guests: usize, ports: u8) -> Self {
        Self { host: guests as u64 * GUEST_MEMORY, length: u64::from(ports) * GUEST_MEMORY }
    }

    /// Returns the host address of a guest-physical range, if all its `length` bytes belong to the domain.
    pub(crate) fn at(self, address: u64, length: usize) -> Option<u64> {
        let inside = address.checked_add(length as u64)? <= self.length;
        inside.then(|| self.host + address)
    }

    /// Returns `true` if all bytes of the host range belong to the domain.
    pub(crate) fn holds(self, host: u64, length: usize) -> bool {
        host.checked_sub(self.host).is_some_and(|address| self.at(address, length).is_some())
    }
}
