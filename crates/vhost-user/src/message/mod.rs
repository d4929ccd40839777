//! Messages of the front end and their replies: header, requests, wire layouts, and the errors of a request.
//!
//! Source: QEMU's `docs/interop/vhost-user.rst`. Numbers have the byte order of the host there; every current host of a
//! front end is little-endian, and so is this codec, on any machine.

mod areas;
mod body;
mod code;
mod error;
mod header;
mod limits;
mod request;
mod ring;

pub use areas::{InflightArea, LogArea, MemoryRegion};
pub use code::RequestCode;
pub use error::{RegionError, RequestError};
pub use header::MessageHeader;
pub use limits::{MAX_BODY, MAX_CONFIG, MAX_MESSAGE_FDS, MAX_RING_SIZE};
pub use request::{DeviceConfigAccess, FrontendRequest};
pub use ring::{PackedIndex, RingAddresses, RingBase, RingEventfdMessage};
