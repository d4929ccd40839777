//! Inserts checksums into a frame. The transport's field must hold the sum of the pseudo header, length included,
//! as drivers leave it there.
//!
//! For a packet to be cut, [`crate::segment`] inserts per segment what this module inserts once.

use crate::OffloadRequest;
use crate::checksum::PartialChecksum;
use crate::crc::crc32c;
use crate::headers::{IPV4_CHECKSUM, IPV4_HEADER, SCTP_CHECKSUM, TCP_CHECKSUM, UDP_CHECKSUM};
use core::ops::Range;
use plane::bytes::{be16, put16};
use plane::frame::{TransportProtocol, TrustedChecksum};
use thiserror::Error;

/// Reason why a requested checksum was not inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ChecksumError {
    /// The IPv4 header of the request is too short or not inside the frame.
    #[error("cannot insert the checksum: the IP header is outside the frame")]
    IpHeader,
    /// The transport checksum field is not inside the frame.
    #[error("cannot insert the checksum: the transport header is outside the frame")]
    L4Header,
    /// The card does not know the transport, so it has no checksum to insert.
    #[error("cannot insert the checksum: the transport protocol is unknown")]
    Transport,
}

/// Inserts the requested checksums into a whole frame. IPv6 has no header checksum: a request for one is ignored.
/// Returns the transport checksum as a trusted one, if it was inserted.
///
/// # Errors
/// Reports a request that does not fit the frame, and leaves the frame unchanged.
#[inline]
pub fn insert(frame: &mut [u8], request: &OffloadRequest) -> Result<Option<TrustedChecksum>, ChecksumError> {
    let (ip_start, l4_start) = (request.mac_length, request.l4_start());
    let ip = request.ip_checksum && request.ipv4;
    if ip && (l4_start > frame.len() || request.ip_length < IPV4_HEADER) {
        return Err(ChecksumError::IpHeader);
    }
    let mut sealed = None;
    if request.l4_checksum {
        let end = frame.len();
        let transport = request.l4.ok_or(ChecksumError::Transport)?;
        let field = checksum_field(transport);
        let segment =
            frame.get_mut(l4_start..).filter(|s| s.len() >= field.end).ok_or(ChecksumError::L4Header)?;
        let seed = match transport {
            TransportProtocol::Sctp => seal_sctp(segment),
            _ => seal_l4(segment, field.start, transport),
        };
        sealed = Some(TrustedChecksum { start: l4_start, end, transport, seed });
    }
    if ip {
        seal_ipv4(frame.get_mut(ip_start..l4_start).unwrap_or_default());
    }
    Ok(sealed)
}

/// Returns the byte range of the checksum field in a transport header.
fn checksum_field(transport: TransportProtocol) -> Range<usize> {
    match transport {
        TransportProtocol::Tcp => TCP_CHECKSUM..TCP_CHECKSUM + 2,
        TransportProtocol::Udp => UDP_CHECKSUM..UDP_CHECKSUM + 2,
        TransportProtocol::Sctp => SCTP_CHECKSUM..SCTP_CHECKSUM + 4,
    }
}

/// Writes the checksum of an IPv4 header.
fn seal_ipv4(header: &mut [u8]) {
    put16(header, IPV4_CHECKSUM, 0);
    let checksum = PartialChecksum::of(header).checksum();
    put16(header, IPV4_CHECKSUM, checksum);
}

/// Writes the checksum of a TCP segment or UDP datagram into the checksum field. Returns the seed that the field had
/// before, the sum of the pseudo header.
fn seal_l4(segment: &mut [u8], field: usize, transport: TransportProtocol) -> u16 {
    let seed = be16(segment, field).unwrap_or(0);
    let sum = PartialChecksum::of(segment);
    put16(
        segment,
        field,
        if transport == TransportProtocol::Udp { sum.udp_checksum() } else { sum.checksum() },
    );
    seed
}

fn seal_sctp(packet: &mut [u8]) -> u16 {
    if let Some((before, rest)) = packet.split_at_mut_checked(SCTP_CHECKSUM)
        && let Some((field, after)) = rest.split_first_chunk_mut::<4>()
    {
        *field = crc32c(&[before, &[0; 4], after]).to_le_bytes();
    }
    0
}
