//! What there is to say of a plain frame, which takes no more than a glance: the same that [`classify`] says of any frame.
//!
//! [`classify`]: super::receive::classify

use super::receive::Receive;
use i82576::bits::rxcsum::{IPOFL, TUOFL};
use i82576::descriptor::rx::{packet_type, status};
use offload::plain::Plain;
use plane::frame::Sealed;

/// What there is to say of a frame, as RXCSUM asks; `None` if it takes a closer look. What
/// the card itself has `sealed` needs no second look at the payload. Tags must not be of the type of IPv4.
#[must_use]
#[inline(always)]
pub(crate) fn glance(frame: &[u8], rxcsum: u32, sealed: Option<Sealed>) -> Option<Receive> {
    let plain = Plain::of(frame)?;
    let (packet_type, looked_at) = if plain.is_udp() {
        (packet_type::IPV4 | packet_type::UDP, status::L4CS | status::UDPCS)
    } else {
        (packet_type::IPV4 | packet_type::TCP, status::L4CS)
    };
    let mut status = 0;
    if rxcsum & IPOFL != 0 {
        status |= status::IPCS | if plain.is_network_right() { 0 } else { status::IPE };
    }
    if rxcsum & TUOFL != 0
        && let Some(right) = plain.is_transport_right(sealed)
    {
        status |= looked_at | if right { 0 } else { status::L4E };
    }
    Some(Receive { packet_type, status })
}
