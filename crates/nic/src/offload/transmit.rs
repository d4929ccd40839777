//! Checksum insertion: the context gives the lengths of the headers, and the options of the data descriptor select the
//! checksums (datasheet 7.2.5). The crate `offload` computes them.

use i82576::descriptor::legacy::LegacyChecksumInsertion;
use i82576::descriptor::orders::RawDataDescriptor;
use i82576::descriptor::tx::{AdvancedContextDescriptor, L4PacketType};
use offload::OffloadRequest;
use offload::checksum::PartialChecksum;
use offload::insert::ChecksumError;
use plane::bytes::put16;
use plane::frame::{TransportProtocol, TrustedChecksum};

/// Returns the checksum request of a data descriptor and its context.
#[inline]
pub(crate) fn request(orders: RawDataDescriptor, context: &AdvancedContextDescriptor) -> OffloadRequest {
    OffloadRequest {
        mac_length: context.mac_length.into(),
        ip_length: context.ip_length.into(),
        l4_length: context.l4_length.into(),
        ipv4: context.ipv4,
        l4: match context.l4 {
            L4PacketType::Tcp => Some(TransportProtocol::Tcp),
            L4PacketType::Udp => Some(TransportProtocol::Udp),
            L4PacketType::Sctp => Some(TransportProtocol::Sctp),
            L4PacketType::Reserved => None,
        },
        ip_checksum: orders.insert_ip_checksum(),
        l4_checksum: orders.insert_l4_checksum(),
        seed_has_length: false,
    }
}

/// Inserts the requested checksums into a whole frame. Returns the inserted transport checksum, which the receiving
/// card need not verify, or `None` if none was requested.
///
/// # Errors
/// [`ChecksumError`] if the headers that the context describes do not fit into the frame, which stays unchanged.
#[inline]
pub(crate) fn insert(
    frame: &mut [u8],
    orders: impl Into<RawDataDescriptor>,
    context: &AdvancedContextDescriptor,
) -> Result<Option<TrustedChecksum>, ChecksumError> {
    let orders = orders.into();
    if orders.insert_checksum() {
        offload::insert::insert(frame, &request(orders, context))
    } else {
        Ok(None)
    }
}

/// Inserts the checksum that a legacy descriptor requests: the sum of the frame from the requested start to the end,
/// including the checksum field's old value. A zero stays a zero, because the card does not know whether this is UDP. A
/// request that does not fit the frame is ignored (datasheet 7.2.2.1.3).
pub(crate) fn insert_legacy(frame: &mut [u8], checksum: &LegacyChecksumInsertion) {
    let field = usize::from(checksum.field);
    if let Some(summed) = frame.get(checksum.start.into()..).filter(|summed| !summed.is_empty()) {
        let value = PartialChecksum::of(summed).checksum();
        put16(frame, field, value);
    }
}
