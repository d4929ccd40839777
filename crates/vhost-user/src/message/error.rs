//! Errors for which the back end refuses a completely received request.

use thiserror::Error;

/// Reason for which a memory region is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RegionError {
    /// The memory region has no bytes.
    #[error("the memory region at {0:#x} has size 0")]
    Empty(u64),
    /// The end of the memory region or of its part of the file exceeds the address space.
    #[error("the memory region at {0:#x} wraps around")]
    Wraps(u64),
    /// The memory region overlaps another region, by guest or by user addresses.
    #[error("the memory region at {0:#x} overlaps another region")]
    Overlaps(u64),
    /// The table would have more memory regions than the back end supports.
    #[error("too many memory regions (maximum: {0})")]
    TooMany(usize),
    /// No memory region has the guest address, the user address and the size of the request.
    #[error("no mapped memory region equals the request's region at {0:#x}")]
    Missing(u64),
}

/// Reason for which a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RequestError {
    /// A network device has no request of this number.
    #[error("a network device has no such vhost-user request")]
    Unknown,
    /// The request needs a protocol feature that the front end has not set.
    #[error("protocol feature {0} is not negotiated")]
    NotNegotiated(u32),
    /// The request's body has the wrong length.
    #[error("the request's body has {received} bytes (expected: {expected})")]
    BodySize {
        /// Number of bytes of the request's body as received.
        received: usize,
        /// Bytes that the request's body must have.
        expected: usize,
    },
    /// The message has the wrong number of descriptors.
    #[error("the request's message has {received} file descriptors (expected: {expected})")]
    Descriptors {
        /// Number of descriptors of the received message.
        received: usize,
        /// Number of descriptors that the request must have.
        expected: usize,
    },
    /// The device has no such ring.
    #[error("ring {ring} is out of range (the device has {rings})")]
    RingOutOfRange {
        /// Number of the ring that the request names.
        ring: u32,
        /// Number of the device's rings.
        rings: u32,
    },
    /// The size of a ring is 0 or too large.
    #[error("ring size {size} is out of range (1-{limit})")]
    RingSize {
        /// Number of descriptors of the ring, as requested.
        size: u32,
        /// Maximum number of descriptors of a ring.
        limit: u32,
    },
    /// The size of a ring cannot change before `GET_VRING_BASE` stops the ring.
    #[error("ring {0} is running: stop it with GET_VRING_BASE first")]
    RingIsRunning(u32),
    /// The value in a request to enable or disable a ring is neither 0 nor 1.
    #[error("a ring is enabled by 1 and disabled by 0, not by {0}")]
    EnableValue(u32),
    /// The front end sets feature bits of the device that were not offered.
    #[error("feature bits {0:#x} were not offered")]
    UnofferedFeatures(u64),
    /// The front end changes feature bits while a ring runs.
    #[error("feature bits {0:#x} cannot change while a ring is running")]
    FeaturesWhileRunning(u64),
    /// The front end sets protocol features that were not offered.
    #[error("protocol features {0:#x} were not offered")]
    UnofferedProtocolFeatures(u64),
    /// A memory region of the request is invalid.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The area of the migration log is empty or wraps around.
    #[error("the migration log of {size:#x} bytes at offset {offset:#x} is invalid")]
    LogArea {
        /// Size of the migration log in bytes.
        size: u64,
        /// Offset of the migration log in its file in bytes.
        offset: u64,
    },
    /// The area for unfinished descriptors is empty, wraps around, or is for more or larger rings than the device
    /// supports.
    #[error("the area for unfinished descriptors of {queues} rings with {queue_size} descriptors is invalid")]
    InflightArea {
        /// Number of rings whose unfinished descriptors are to be recorded.
        queues: u16,
        /// Maximum number of unfinished descriptors to record for each ring.
        queue_size: u16,
    },
    /// The access to the configuration space is empty or too long.
    #[error("configuration access of {size} bytes at offset {offset} is out of range (1-256 bytes)")]
    ConfigRange {
        /// Offset of the access in the configuration space in bytes.
        offset: u32,
        /// Number of bytes of the access to the configuration space.
        size: u32,
    },
    /// The maximum transmission unit is out of range.
    #[error("MTU {0} is out of range (68-65535)")]
    Mtu(u64),
    /// The device status has more than 8 bits.
    #[error("device status {0:#x} is out of range (at most 0xff)")]
    Status(u64),
    /// The host could not carry out the task of the request.
    #[error("the host's task for the request failed, such as mapping memory or stopping a ring")]
    HostFailed,
}
