//! Faults of a device's accesses to guest memory.

/// Access to guest memory that the device was not permitted. No byte was moved.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the device cannot access guest memory at DMA address {iova:#x}: it is {kind}")]
pub struct DmaFault {
    /// First I/O virtual address that was not permitted.
    pub iova: u64,
    /// Reason why the access was not permitted.
    pub kind: DmaFaultKind,
}

/// Reason why an I/O virtual address is not accessible.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum DmaFaultKind {
    /// The address is in no DMA region that the client has mapped.
    #[error("in no DMA region that the client has mapped")]
    Unmapped,
    /// The DMA region at the address was mapped without a file descriptor.
    #[error("in a DMA region that the client has mapped without a file descriptor")]
    NotShared,
    /// The permissions of the region at the address exclude the access.
    #[error("in a DMA region that does not permit the access")]
    Forbidden,
    /// The access extends beyond the last I/O virtual address.
    #[error("so high that the access ends beyond the address space")]
    Wraps,
}
