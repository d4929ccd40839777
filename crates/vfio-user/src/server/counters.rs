//! Counters of a session, also for the count of VMM interventions.

/// Counters since the connection began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages handled, of any kind.
    pub messages: u64,
    /// Reads.
    pub reads: u64,
    /// Writes without a reply; each write of a `REGION_WRITE_MULTI` counts.
    pub posted_writes: u64,
    /// Writes with a reply.
    pub synchronous_writes: u64,
    /// Reads and writes outside a region, or not permitted by it.
    pub out_of_range: u64,
    /// Writes with an inconsistent length.
    pub malformed_writes: u64,
    /// Requests refused with an error, including those without a reply.
    pub refused: u64,
    /// Replies that match no request.
    pub unasked_replies: u64,
    /// Descriptors closed unused: too many, or with a message that takes none.
    pub dropped_fds: u64,
}
