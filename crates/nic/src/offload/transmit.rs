//! Checksum insertion: the context gives the lengths of the headers, and the options of the data descriptor select the
//! checksums (datasheet 7.2.5). The crate `offload` computes them.

use i82576::descriptor::legacy::Checksum;
use i82576::descriptor::orders::Orders;
use i82576::descriptor::tx::{Context, L4};
use offload::Request;
use offload::checksum::Sum;
use offload::insert::Error;
use plane::bytes::put16;
use plane::frame::{Sealed, Transport};

/// Returns the checksum request of a data descriptor and its context.
#[inline]
pub(crate) fn request(orders: Orders, context: &Context) -> Request {
    Request {
        mac_length: context.mac_length.into(),
        ip_length: context.ip_length.into(),
        l4_length: context.l4_length.into(),
        ipv4: context.ipv4,
        l4: match context.l4 {
            L4::Tcp => Some(Transport::Tcp),
            L4::Udp => Some(Transport::Udp),
            L4::Sctp => Some(Transport::Sctp),
            L4::Reserved => None,
        },
        ip_checksum: orders.insert_ip_checksum(),
        l4_checksum: orders.insert_l4_checksum(),
    }
}

/// Inserts the requested checksums into a whole frame. Returns the sealed checksum of the transport, if it was
/// inserted.
///
/// # Errors
/// The frame is unchanged if what the context describes does not fit into it.
#[inline]
pub fn insert(
    frame: &mut [u8],
    orders: impl Into<Orders>,
    context: &Context,
) -> Result<Option<Sealed>, Error> {
    let orders = orders.into();
    if orders.insert_checksum() {
        offload::insert::insert(frame, &request(orders, context))
    } else {
        Ok(None)
    }
}

/// Inserts the checksum that a legacy descriptor requests: the sum from its start to the end of the frame, including
/// the checksum field's old value. A zero stays a zero, because the card does not know whether this is UDP. A request
/// that does not fit the frame is ignored (datasheet 7.2.2.1.3).
pub fn insert_legacy(frame: &mut [u8], checksum: &Checksum) {
    let field = usize::from(checksum.field);
    if let Some(summed) = frame.get(checksum.start.into()..).filter(|summed| !summed.is_empty()) {
        let value = Sum::of(summed).checksum();
        put16(frame, field, value);
    }
}
