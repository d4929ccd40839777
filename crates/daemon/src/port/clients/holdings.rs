//! What the host holds for a function's client, whoever that is: it stays when clients come and go. Left out: the connection
//! (`connection`), and the function itself, which the card has.

use super::errand::Errands;
use super::pages::SharedPages;
use super::successor::Successor;
use crate::flight::Flight;
use host::dma::MapRegionError;
use host::eventfd::AdoptError;

/// The holdings.
#[derive(Debug)]
pub(in crate::port) struct Holdings {
    /// Pages that the client may map.
    pub(super) pages: Option<SharedPages>,
    /// Keeps what the client hands over for a successor.
    pub(in crate::port) successor: Box<dyn Successor>,
    /// Maps and unmaps.
    pub(in crate::port) errands: Errands,
    /// Flight recorder.
    pub(super) flight: Flight,
    /// Why the last window was refused, for the log.
    pub(super) refused: Option<MapRegionError>,
    /// Why the last eventfd was refused, for the log.
    pub(super) refused_eventfd: Option<AdoptError>,
}

impl Holdings {
    /// Creates the holdings of a function without a client.
    pub(in crate::port) fn new(successor: Box<dyn Successor>, errands: Errands) -> Self {
        let flight = Flight::default();
        Self { pages: None, successor, errands, flight, refused: None, refused_eventfd: None }
    }
}
