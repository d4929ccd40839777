//! What a session has seen: for people, and for the count of VMM interventions.

/// Counted since the connection began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages handled, of any kind.
    pub messages: u64,
    /// Loads.
    pub reads: u64,
    /// Stores that the client did not wait for; each write of a `REGION_WRITE_MULTI` counts.
    pub posted_writes: u64,
    /// Stores that the client waited for.
    pub synchronous_writes: u64,
    /// Loads and stores outside a region, or of a kind the region does not take.
    pub out_of_range: u64,
    /// Stores whose length contradicts itself.
    pub malformed_writes: u64,
    /// Requests refused with an error, or that would have been if the client had wanted a reply.
    pub refused: u64,
    /// Replies to nothing.
    pub unasked_replies: u64,
    /// Descriptors that were closed unused: too many, or with a message that takes none.
    pub dropped_fds: u64,
}
