//! Messages between a port and the thread that watches its uplink's interface.

use crate::port::engine::uplink::state::InterfaceState;
use crate::vault::ClaimRank;
use std::sync::Arc;

/// Report of the watching thread to the port about the uplink's interface.
#[derive(Debug)]
pub(in crate::port::engine::uplink) enum InterfaceReport<D> {
    /// The attached interface has changed its state.
    Changed(InterfaceState),
    /// The attached interface was deleted.
    Gone,
    /// The interface exists again, and this device is attached to it.
    Attached(Arc<D>, InterfaceState),
}

/// Order of a port to the thread that watches its uplink's interface.
#[derive(Debug)]
pub(super) enum InterfaceWatcherCommand<D> {
    /// Close this device of the uplink, which the port does not use any more. Closing may block.
    Close(Arc<D>),
    /// Keep the device's file descriptor for the successor process, in place of a former uplink's.
    Own(ClaimRank),
    Stop,
}

/// Next action of the watching thread, after the port's orders.
pub(super) enum InterfaceWatcherAction {
    Look,
    /// Check the interface after [`super::RETRY`].
    Later,
    Stop,
}
