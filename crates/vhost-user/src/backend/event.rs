//! Events for the host, and tasks that the host must complete before the session continues.

use alloc::vec::Vec;

use super::ring::{RingFault, RingSetup};
use crate::message::{ConfigAccess, InflightArea, LogArea, MemoryRegion, RingBase};

/// Memory region with the descriptor of its file. The host checks the kind and the size of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct SharedRegion<F> {
    /// Addresses of the region.
    pub region: MemoryRegion,
    /// Descriptor of the file with the region's memory.
    pub fd: F,
}

/// Change that the host must apply before it calls [`step`](super::BackendSession::step) again.
#[derive(Debug, PartialEq, Eq)]
pub enum BackendEvent<F> {
    /// The front end has taken the session.
    OwnerSet,
    /// The front end has given the session up: all rings are disabled.
    OwnerReset,
    /// The driver has accepted these feature bits of the device.
    FeaturesSet(u64),
    /// The front end uses these protocol features.
    ProtocolFeaturesSet(u64),
    /// The device status has changed to this value.
    StatusSet(u8),
    /// The host may use this ring from now on. With a base the ring begins anew, whatever happened to it before.
    RingLive(RingSetup),
    /// The host must not access this ring until the ring is live again. Its position is kept by the host.
    RingPaused {
        /// Number of the paused ring.
        ring: u32,
    },
    /// A live ring is enabled or disabled.
    RingEnabled {
        /// Number of the ring.
        ring: u32,
        /// True if the ring is enabled.
        enabled: bool,
    },
    /// A ring with all its settings is not live, because a setting is invalid or its memory is missing.
    RingFaulty {
        /// Number of the ring.
        ring: u32,
        /// Setting that prevents the use of the ring.
        fault: RingFault,
    },
    /// A ring has a new eventfd for kicks by the guest; without one, the host must poll the ring.
    KickSet {
        /// Number of the ring.
        ring: u32,
        /// Eventfd of kicks. Reading it must not block: a front end may send any file.
        fd: Option<F>,
    },
    /// A ring has a new eventfd that interrupts the guest, or none.
    CallSet {
        /// Number of the ring.
        ring: u32,
        /// Eventfd of interrupts. Writing it must not block: a front end may send a full one.
        fd: Option<F>,
    },
    /// A ring has a new eventfd for errors, or none.
    ErrorSet {
        /// Number of the ring.
        ring: u32,
        /// Eventfd of errors.
        fd: Option<F>,
    },
    /// The migration log has a new eventfd.
    LogEventSet(F),
    /// The guest's Ethernet address must be broadcast as a RARP packet, after a migration.
    SendRarp([u8; 6]),
    /// The device is reset: features, status and rings have their initial state, memory stays.
    DeviceReset,
    /// The host must close these descriptors, which came with a refused message, or with a message that needs none.
    UnusedDescriptors(Vec<F>),
}

/// Work of the host that the front end waits for. The host reports the outcome by
/// [`complete`](super::BackendSession::complete).
#[derive(Debug, PartialEq, Eq)]
pub enum BackendTask<F> {
    /// Unmaps all memory, and maps these regions instead. No ring is live. After a failure no region counts as mapped.
    ReplaceMemory(Vec<SharedRegion<F>>),
    /// Maps one more region. No ring is live. After a failure the region counts as not mapped.
    AddRegion(SharedRegion<F>),
    /// Unmaps a region. No ring is live. The region counts as unmapped, whatever the outcome.
    RemoveRegion(MemoryRegion),
    /// Finishes the descriptors of a ring and stops using it, with [`TaskOutcome::Base`]. The host closes the eventfd of
    /// kicks, and must not access the ring's memory after the completion.
    StopRing {
        /// Number of the ring to stop.
        ring: u32,
    },
    /// Logs writes to guest memory in this area. Marks outside of the area must be dropped.
    SetLog {
        /// Part of the file that has the log.
        area: LogArea,
        /// Descriptor of the log's file.
        fd: F,
    },
    /// Checks the maximum transmission unit in bytes that the guest will see.
    SetMtu(u16),
    /// Reads the configuration space, with [`TaskOutcome::Config`] of the same number of bytes.
    ReadConfig {
        /// Offset of the access in the configuration space in bytes.
        offset: u32,
        /// Bytes to read, 1 to 256.
        size: u32,
    },
    /// Writes the configuration space. Read-only fields may be written only with flag 1, during a migration.
    WriteConfig(ConfigAccess),
    /// Creates memory that records unfinished descriptors, with [`TaskOutcome::Inflight`].
    CreateInflight {
        /// Number of rings to record.
        queues: u16,
        /// Descriptors of each ring.
        queue_size: u16,
    },
    /// Takes over the records of unfinished descriptors from a previous session.
    RestoreInflight {
        /// Part of the file that has the records. The host checks its size against its own layout.
        area: InflightArea,
        /// Descriptor of the file with the records.
        fd: F,
    },
}

/// Outcome of a [`BackendTask`]. An outcome of another task than the pending one counts as a failure.
#[derive(Debug, PartialEq, Eq)]
pub enum TaskOutcome<F> {
    /// The task is done, and has no result.
    Done,
    /// The task has failed.
    Failed,
    /// The ring is stopped at this position.
    Base(RingBase),
    /// Contents of the configuration space.
    Config(Vec<u8>),
    /// Memory that records unfinished descriptors.
    Inflight {
        /// Part of the file for the front end to map.
        area: InflightArea,
        /// Descriptor of the file.
        fd: F,
    },
}
