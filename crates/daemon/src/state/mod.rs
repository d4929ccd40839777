//! Format of the state that one process saves for the next: an envelope with kind, version, length and checksum,
//! around a body in postcard's encoding.
//!
//! ```text
//! offset  bytes
//!      0      8  "SoftIOV\n"
//!      8      4  kind of state, four letters
//!     12      4  version of the body, little endian like all numbers
//!     16      8  length of the body
//!     24      4  CRC-32 (IEEE 802.3) of bytes 0 to 23 and of the body
//!     28         the body
//! ```
//!
//! `docs/decisions/14` has the rule for versions.

pub mod addresses;
pub mod avf;
mod avf_v5;
pub mod card;
#[cfg(test)]
pub(crate) mod earlier;
mod envelope;
mod kinds;
pub mod mixed;
pub mod port;
mod v3;
mod versions;
pub mod vhost;
pub mod virtio;

pub use crate::totals::PortCounterTotals;
pub use addresses::HeldAddresses;
pub use avf::{AvfPortState, PausedAvfPortState};
pub use card::CardState;
#[cfg(test)]
pub(crate) use envelope::seal;
pub use envelope::{SavedState, SavedStateError, decode, is_kind, read, write};
pub use mixed::MixedPortState;
pub use plane::guard::SavedStations;
pub use port::{I82576PortState, PortSoftwareState};
pub use versions::check_version;
pub use vhost::{SavedPausedPacket, VhostClientState};
pub use virtio::{PausedVirtioPortState, VirtioPortState};
