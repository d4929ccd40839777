//! Resources that the host holds for the client of a function. They stay when clients come and go. `connection` has
//! the connection, and the card has the function itself.

use super::errand::Errands;
use super::pages::SharedPages;
use super::successor::Successor;
use crate::flight::Flight;
use host::dma::MapRegionError;
use host::eventfd::AdoptError;

/// Resources for the client of a function.
#[derive(Debug)]
pub(in crate::port) struct Holdings {
    /// Pages that the client may map.
    pub(super) pages: Option<SharedPages>,
    /// Saved state and descriptors of the client, for the next process.
    pub(in crate::port) successor: Box<dyn Successor>,
    /// Blocking calls for the client, such as mapping memory.
    pub(in crate::port) errands: Errands,
    /// Flight recorder of the function.
    pub(super) flight: Flight,
    /// Error of the last refused DMA window, for the log.
    pub(super) refused: Option<MapRegionError>,
    /// Error of the last refused eventfd, for the log.
    pub(super) refused_eventfd: Option<AdoptError>,
}

impl Holdings {
    /// Creates the resources of a function without a client.
    pub(in crate::port) fn new(successor: Box<dyn Successor>, errands: Errands) -> Self {
        let flight = Flight::default();
        Self { pages: None, successor, errands, flight, refused: None, refused_eventfd: None }
    }
}
