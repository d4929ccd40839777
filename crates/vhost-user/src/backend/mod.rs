//! Back end of the protocol: one [`BackendSession`] per connection, between a socket and the host's rings.
//!
//! The session never touches guest memory. It returns memory regions and eventfds to the host, and reports when the
//! host may access a ring ([`BackendEvent::RingLive`]) and when no longer ([`BackendEvent::RingPaused`],
//! [`HostOperation::StopRing`]).

mod event;
mod memory;
mod offer;
mod requests;
mod ring;
mod saved;
mod session;
mod state;

pub use event::{BackendEvent, HostOperation, HostOperationOutcome, SharedRegion};
pub use memory::{MemoryRegionPiece, MemoryTable};
pub use offer::BackendOffer;
pub use ring::{GuestRange, LiveRingParameters, RingFault};
pub use saved::{SessionRestoreError, SessionSaveError};
pub use session::{BackendProgress, BackendSession, MAX_UNSENT_REPLIES, SessionError};
pub use state::BackendCounters;
