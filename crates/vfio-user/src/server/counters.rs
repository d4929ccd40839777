//! Counters of a vfio-user session: messages, register accesses, refused requests and dropped descriptors.

/// Counters of a session since its connection began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionCounters {
    /// Number of the client's messages that the session has handled, of any kind.
    pub messages: u64,
    /// Number of region reads by the client.
    pub reads: u64,
    /// Number of region writes without a reply; each write of a `REGION_WRITE_MULTI` counts.
    pub posted_writes: u64,
    /// Number of region writes by the client with a reply.
    pub synchronous_writes: u64,
    /// Number of reads and writes that lie outside a region, or that the region does not permit.
    pub out_of_range: u64,
    /// Number of region writes by the client with an inconsistent length.
    pub malformed_writes: u64,
    /// Number of requests refused with an error, including those without a reply.
    pub refused: u64,
    /// Number of replies from the client that match no request.
    pub unasked_replies: u64,
    /// Number of received descriptors closed unused: too many, or with a message that takes none.
    pub dropped_fds: u64,
}
