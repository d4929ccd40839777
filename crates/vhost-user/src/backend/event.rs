//! Events that a back end's session reports to the host, and tasks that the host must complete before the session
//! continues.

use alloc::vec::Vec;

use super::ring::{LiveRingParameters, RingFault};
use crate::message::{DeviceConfigAccess, InflightArea, LogArea, MemoryRegion, RingBase};

/// Memory region with the descriptor of its file. The host checks the kind and the size of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct SharedRegion<F> {
    /// Addresses of the memory region.
    pub region: MemoryRegion,
    /// Descriptor of the file with the region's memory.
    pub fd: F,
}

/// Change that the host must apply before it calls [`step`](super::BackendSession::step) again.
#[derive(Debug, PartialEq, Eq)]
pub enum BackendEvent<F> {
    /// Event: the front end has taken ownership of the session.
    OwnerSet,
    /// Event: the front end has given up the session, so all rings are disabled.
    OwnerReset,
    /// Event: the driver has accepted these feature bits of the device.
    FeaturesSet(u64),
    /// Event: the front end uses these protocol features.
    ProtocolFeaturesSet(u64),
    /// Event: the device status has changed to this value.
    StatusSet(u8),
    /// Event: the host may use this ring from now on. If the ring has a base, it starts there, and the host discards
    /// its own position.
    RingLive(LiveRingParameters),
    /// Event: the host must not access this ring until the ring is live again. The host keeps the ring's position.
    RingPaused {
        /// Number of the paused ring.
        ring: u32,
    },
    /// Event: a live ring is enabled or disabled.
    RingEnabled {
        /// Number of the enabled or disabled ring.
        ring: u32,
        /// True if the front end has enabled the ring.
        enabled: bool,
    },
    /// Event: the front end has set all parameters of a ring, but the ring is not live, because a parameter is invalid
    /// or the ring's memory is missing.
    RingFaulty {
        /// Number of the ring that is not live.
        ring: u32,
        /// Setting that prevents the host from using the ring.
        fault: RingFault,
    },
    /// Event: a ring has a new eventfd for kicks by the guest; without one, the host must poll the ring.
    KickSet {
        /// Number of the ring with the new eventfd for kicks.
        ring: u32,
        /// Eventfd of kicks. Reading it must not block: a front end may send any file.
        fd: Option<F>,
    },
    /// Event: a ring has a new eventfd that interrupts the guest, or none.
    CallSet {
        /// Number of the ring with the new eventfd for interrupts.
        ring: u32,
        /// Eventfd of interrupts. Writing it must not block: a front end may send a full one.
        fd: Option<F>,
    },
    /// Event: a ring has a new eventfd for errors, or none.
    ErrorSet {
        /// Number of the ring with the new eventfd for errors.
        ring: u32,
        /// Eventfd by which the host reports errors of the ring.
        fd: Option<F>,
    },
    /// Event: the migration log has a new eventfd.
    LogEventSet(F),
    /// Event: the host must broadcast the guest's Ethernet address as a RARP packet, after a migration.
    SendRarp([u8; 6]),
    /// Event: the device is reset. Features, status and rings have their initial state, memory stays.
    DeviceReset,
    /// Event: the host must close these descriptors, which came with a refused message, or with a message that needs
    /// none.
    UnusedDescriptors(Vec<F>),
}

/// Work of the host that the front end waits for. The host reports the outcome by
/// [`complete`](super::BackendSession::complete).
#[derive(Debug, PartialEq, Eq)]
pub enum HostOperation<F> {
    /// Task: unmaps all memory, and maps these regions in its place. No ring is live. After a failure no region counts
    /// as mapped.
    ReplaceMemory(Vec<SharedRegion<F>>),
    /// Task: maps one more region. No ring is live. After a failure the region counts as not mapped.
    AddRegion(SharedRegion<F>),
    /// Task: unmaps a region. No ring is live. The region counts as unmapped, even after a failure.
    RemoveRegion(MemoryRegion),
    /// Task: finishes the descriptors of a ring and stops using the ring; the outcome is
    /// [`HostOperationOutcome::Base`]. The host closes the eventfd of kicks, and must not access the ring's memory
    /// after the completion.
    StopRing {
        /// Number of the ring to stop.
        ring: u32,
    },
    /// Task: records writes to guest memory in this part of the migration log. Marks outside of the part must be
    /// dropped.
    SetLog {
        /// Part of the file that has the migration log.
        area: LogArea,
        /// Descriptor of the migration log's file.
        fd: F,
    },
    /// Task: checks the maximum transmission unit in bytes that the guest will see.
    SetMtu(u16),
    /// Task: reads the configuration space, with [`HostOperationOutcome::Config`] of the same number of bytes.
    ReadConfig {
        /// Offset of the access in the configuration space in bytes.
        offset: u32,
        /// Number of bytes to read from the configuration space, 1 to 256.
        size: u32,
    },
    /// Task: writes the configuration space. Read-only fields may be written only with flag 1, during a migration.
    WriteConfig(DeviceConfigAccess),
    /// Task: creates memory that records unfinished descriptors, with [`HostOperationOutcome::Inflight`].
    CreateInflight {
        /// Number of rings whose unfinished descriptors are recorded.
        queues: u16,
        /// Maximum number of recorded descriptors of each ring.
        queue_size: u16,
    },
    /// Task: takes over the records of unfinished descriptors from a previous session.
    RestoreInflight {
        /// Part of the file that has the records of unfinished descriptors. The host checks the part's size against its
        /// own record layout.
        area: InflightArea,
        /// File descriptor of the file with the records of unfinished ring descriptors.
        fd: F,
    },
}

/// Outcome of a [`HostOperation`]. An outcome that does not fit the pending task counts as a failure.
#[derive(Debug, PartialEq, Eq)]
pub enum HostOperationOutcome<F> {
    /// Outcome: the task is done, and has no result.
    Done,
    /// Outcome: the task has failed.
    Failed,
    /// Outcome: the ring is stopped at this position.
    Base(RingBase),
    /// Outcome: these are the contents of the configuration space.
    Config(Vec<u8>),
    /// Outcome: this memory records unfinished descriptors.
    Inflight {
        /// Part of the file with the records, for the front end to map.
        area: InflightArea,
        /// File descriptor of the file with the records of unfinished ring descriptors.
        fd: F,
    },
}
