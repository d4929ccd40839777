//! The network front end: the guest's half of a split network driver. Frames to send are copied into the driver's own
//! pages, which are granted and described on the transmit ring. Pages to receive into are granted and posted on the
//! receive ring.
//!
//! - `transmit` and `receive`: the two directions;
//! - `merge`: merges segments into one packet;
//! - here: shared state, and the machine interface.
//!
//! Responses of the back end are checked before use. Page flipping is not supported, and the number of posted
//! pages is fixed.

mod merge;
mod receive;
mod transmit;

pub use receive::FrontendReceivedFrame;
pub use transmit::TransmitError;

use crate::InterfaceRings;
use i82576::MacAddress;
use merge::SegmentMerger;
use receive::FrontendReceiveQueue;
use transmit::FrontendTransmitQueue;

/// Machine operations that the network front end needs. Pages below [`crate::ring::SLOTS`] are for sending, the next
/// [`crate::ring::SLOTS`] for receiving. The implementer accounts for the costs.
pub trait NetworkFrontendHal {
    /// Returns the interface's rings, which front end and back end share.
    fn rings(&mut self) -> &mut InterfaceRings;

    /// Returns a page of the front end for sending or receiving.
    fn page(&mut self, page: u32) -> &mut [u8];

    /// Grants a page to the back end, for writing or only for reading. Returns `None` if the grant table is
    /// full.
    fn grant(&mut self, page: u32, writable: bool) -> Option<u32>;

    /// Ends the grant of a page. Returns `false` if the page is still in use.
    fn end_access(&mut self, reference: u32) -> bool;

    /// Sends an event of this front end to the back end.
    fn notify(&mut self);
}

/// Counters of a network front end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetworkFrontendCounters {
    /// Number of frames that the front end gave to the back end.
    pub sent: u64,
    /// Number of transmit requests that the back end answered with an error.
    pub refused: u64,
    /// Number of frames that the front end received.
    pub received: u64,
    /// Number of frames dropped because the back end's responses were malformed or reported an error.
    pub malformed: u64,
    /// Number of pages that the back end still used after it had responded, so that their grant could not end.
    pub stuck: u64,
}

/// Front end of a guest's network interface.
#[derive(Debug)]
pub struct NetworkFrontend {
    mac: MacAddress,
    transmit: FrontendTransmitQueue,
    receive: FrontendReceiveQueue,
    /// Merger of received segments, if merging is enabled.
    merge: Option<SegmentMerger>,
    counters: NetworkFrontendCounters,
}

impl NetworkFrontend {
    /// Creates a network front end that has posted no page; [`NetworkFrontend::start`] posts pages.
    #[must_use]
    pub fn new(mac: MacAddress) -> Self {
        let (transmit, receive) = (FrontendTransmitQueue::new(), FrontendReceiveQueue::new());
        Self { mac, transmit, receive, merge: None, counters: NetworkFrontendCounters::default() }
    }

    /// Enables merging of consecutive received TCP segments into one packet in the front end.
    pub fn merge_segments(&mut self) {
        self.merge = Some(SegmentMerger::new());
    }

    /// Returns `true` if the front end merges received TCP segments.
    #[must_use]
    pub fn merges(&self) -> bool {
        self.merge.is_some()
    }

    /// Posts pages for received frames on the receive ring.
    pub fn start<H: NetworkFrontendHal>(&mut self, hal: &mut H) {
        self.receive.post(hal);
    }

    /// Returns the interface's MAC address.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Returns the counters of the front end.
    #[must_use]
    pub fn counters(&self) -> &NetworkFrontendCounters {
        &self.counters
    }
}
