//! The front end: the guest's half of the driver. Frames to send are copied to pages of its own, granted, and
//! described on the transmit ring; pages to receive into are granted and posted on the receive ring.
//!
//! - `transmit` and `receive`: a frame's way;
//! - `merge`: segments that become one packet;
//! - here: what both share, and what they need of the guest's machine.
//!
//! What the back end answers is checked before it is used. Left out: page flipping, and growing and shrinking the
//! number of posted pages with the load.

mod merge;
mod receive;
mod transmit;

pub use receive::Received;
pub use transmit::Refused;

use crate::Rings;
use i82576::MacAddress;
use merge::Merge;
use receive::Receive;
use transmit::Transmit;

/// What a front end needs of the machine it runs on. Pages are its own: those below [`crate::ring::SLOTS`] to
/// send from, as many from there on to receive into.
pub trait Hal {
    /// The rings.
    fn rings(&mut self) -> &mut Rings;

    /// One of its pages.
    fn page(&mut self, page: u32) -> &mut [u8];

    /// Grants one of its pages to the back end, for writing or only for reading. `None` if the table is full.
    fn grant(&mut self, page: u32, writable: bool) -> Option<u32>;

    /// Withdraws a grant; `false` if the page is still in use.
    fn end_access(&mut self, reference: u32) -> bool;

    /// Sends the back end an event.
    fn notify(&mut self);
}

/// What a front end has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames given to the back end.
    pub sent: u64,
    /// Requests that the back end has refused.
    pub refused: u64,
    /// Frames received.
    pub received: u64,
    /// Frames lost because the back end's responses made no sense or told of an error.
    pub malformed: u64,
    /// Pages that the back end did not let go of when it said it had.
    pub stuck: u64,
}

/// A front end.
#[derive(Debug)]
pub struct Front {
    mac: MacAddress,
    transmit: Transmit,
    receive: Receive,
    /// It merges segments.
    merge: Option<Merge>,
    counters: Counters,
}

impl Front {
    /// A front end with nothing posted: [`Front::start`].
    #[must_use]
    pub fn new(mac: MacAddress) -> Self {
        let (transmit, receive) = (Transmit::new(), Receive::new());
        Self { mac, transmit, receive, merge: None, counters: Counters::default() }
    }

    /// From now on segments of a stream that follow each other are handed over as one packet.
    pub fn merge_segments(&mut self) {
        self.merge = Some(Merge::new());
    }

    /// Whether it merges segments.
    #[must_use]
    pub fn merges(&self) -> bool {
        self.merge.is_some()
    }

    /// Posts pages to receive into.
    pub fn start<H: Hal>(&mut self, hal: &mut H) {
        self.receive.post(hal);
    }

    /// Its address.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// What it has counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }
}
