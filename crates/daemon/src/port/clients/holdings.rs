//! Resources that the host holds for the client of a function. The resources stay when clients come and go.
//! `connection` has the connection, and the card has the function itself.

use super::errand::BlockingCallQueue;
use super::pages::SharedRegisterPages;
use super::successor::ClientStateSaver;
use crate::flight::FlightRecorder;
use host::dma::MapDmaRegionError;
use host::eventfd::EventFdError;
use units::WorkAccount;

/// Resources that the host holds for the client of a function.
#[derive(Debug)]
pub(in crate::port) struct ClientResources {
    /// Register pages of the VF that the client may map.
    pub(super) pages: Option<SharedRegisterPages>,
    /// Saved state and file descriptors of the client, for the successor process.
    pub(in crate::port) successor: Box<dyn ClientStateSaver>,
    /// Blocking calls for the client, such as mapping memory.
    pub(in crate::port) errands: BlockingCallQueue,
    /// True if the function's PCI configuration or MSI-X table may differ from the saved one. The client's next step
    /// saves it.
    pub(super) configuration_changed: bool,
    /// Account of the work that the port does for the client's messages.
    pub(in crate::port) account: WorkAccount,
    /// Flight recorder of the function.
    pub(super) flight: FlightRecorder,
    /// Error of the last refused DMA window, for the log.
    pub(super) refused: Option<MapDmaRegionError>,
    /// Error of the last refused eventfd, for the log.
    pub(super) refused_eventfd: Option<EventFdError>,
    /// Fault because of which the card does not serve a vhost-user client's ring, for the log.
    pub(super) ring_fault: Option<String>,
    /// True if a vhost-user client has started a ring, and shares no memory.
    pub(super) ring_without_memory: bool,
}

impl ClientResources {
    /// Creates the resources of a function without a client.
    pub(in crate::port) fn new(successor: Box<dyn ClientStateSaver>, errands: BlockingCallQueue) -> Self {
        Self {
            pages: None,
            successor,
            errands,
            configuration_changed: false,
            account: WorkAccount::default(),
            flight: FlightRecorder::default(),
            refused: None,
            refused_eventfd: None,
            ring_fault: None,
            ring_without_memory: false,
        }
    }
}
