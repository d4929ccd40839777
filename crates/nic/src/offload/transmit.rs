//! Checksum insertion: the lengths of the context say where, the options of the data descriptor say which
//! (datasheet 7.2.5). The card believes the context and not the frame, as the silicon does; it only refuses
//! to leave the frame.
//!
//! Left out: segmentation (`segment`), which inserts per segment what this inserts once.

use super::checksum::Sum;
use super::crc::crc32c;
use super::{be16, put16};
use core::ops::Range;
use i82576::descriptor::legacy::Checksum;
use i82576::descriptor::tx::{Context, Data, L4};
use thiserror::Error;

/// Where in an IPv4 header its checksum is.
const IPV4_CHECKSUM: usize = 10;
/// Where in an SCTP header its checksum is.
const SCTP_CHECKSUM: usize = 8;

/// Why no checksum was inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Error {
    /// The IPv4 header the context describes is too short or not inside the frame.
    #[error("IP header outside the frame")]
    IpHeader,
    /// The transport checksum field is not inside the frame.
    #[error("transport header outside the frame")]
    L4Header,
    /// The context names the reserved transport.
    #[error("reserved transport")]
    Transport,
}

/// A transport checksum that the card has inserted. Whether it is right can be told from this, without summing up
/// the frame again: it is right if its seed was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealed {
    /// Where the transport header starts, bytes from the start of the frame.
    pub start: usize,
    /// Where what was summed ends.
    pub end: usize,
    /// What the context called the transport.
    pub l4: L4,
    /// What was added to the sum for the pseudo header; means nothing with SCTP, which has none.
    pub seed: u16,
}

impl Sealed {
    /// The same, seen from `offset` bytes before the frame.
    #[must_use]
    pub fn behind(self, offset: usize) -> Self {
        Self { start: self.start + offset, end: self.end + offset, ..self }
    }

    /// The same, seen from `offset` bytes within the frame.
    #[must_use]
    pub fn before(self, offset: usize) -> Self {
        Self { start: self.start.saturating_sub(offset), end: self.end.saturating_sub(offset), ..self }
    }
}

/// Inserts the checksums that `data` asks for into a whole frame. The transport's field must hold the sum of
/// the pseudo header, length included, as the driver leaves it there. IPv6 has no header checksum: asking for
/// one is ignored. Answers what is known of the transport's checksum, if it was inserted.
///
/// # Errors
/// The frame is unchanged if what the context describes does not fit into it.
pub fn insert(frame: &mut [u8], data: &Data, context: &Context) -> Result<Option<Sealed>, Error> {
    if !data.insert_ip_checksum && !data.insert_l4_checksum {
        return Ok(None);
    }
    let ip_start = usize::from(context.mac_length);
    let l4_start = ip_start + usize::from(context.ip_length);
    let ip = data.insert_ip_checksum && context.ipv4;
    if ip && (l4_start > frame.len() || l4_start - ip_start < 20) {
        return Err(Error::IpHeader);
    }
    let mut sealed = None;
    if data.insert_l4_checksum {
        let end = frame.len();
        let field = checksum_field(context.l4)?;
        let segment = frame.get_mut(l4_start..).filter(|s| s.len() >= field.end).ok_or(Error::L4Header)?;
        let seed = match context.l4 {
            L4::Sctp => seal_sctp(segment),
            _ => seal_l4(segment, field.start, context.l4, 0),
        };
        sealed = Some(Sealed { start: l4_start, end, l4: context.l4, seed });
    }
    if ip {
        seal_ipv4(frame.get_mut(ip_start..l4_start).unwrap_or_default());
    }
    Ok(sealed)
}

/// Inserts the checksum that a legacy descriptor asks for: the sum from its start to the end of the frame, over
/// whatever its field holds. A zero stays a zero: the card does not know that this is UDP. A request that
/// does not fit the frame is ignored (datasheet 7.2.2.1.3).
pub fn insert_legacy(frame: &mut [u8], checksum: &Checksum) {
    let field = usize::from(checksum.field);
    if let Some(summed) = frame.get(checksum.start.into()..).filter(|summed| !summed.is_empty()) {
        let value = Sum::of(summed).checksum();
        put16(frame, field, value);
    }
}

/// Where in its header the transport's checksum is.
pub(super) fn checksum_field(l4: L4) -> Result<Range<usize>, Error> {
    match l4 {
        L4::Tcp => Ok(16..18),
        L4::Udp => Ok(6..8),
        L4::Sctp => Ok(SCTP_CHECKSUM..SCTP_CHECKSUM + 4),
        L4::Reserved => Err(Error::Transport),
    }
}

/// Writes the checksum of an IPv4 header.
pub(super) fn seal_ipv4(header: &mut [u8]) {
    put16(header, IPV4_CHECKSUM, 0);
    let checksum = Sum::of(header).checksum();
    put16(header, IPV4_CHECKSUM, checksum);
}

/// Writes the checksum of a TCP segment or UDP datagram over the seed in its field, `length` added to it; answers
/// the seed and length together.
pub(super) fn seal_l4(segment: &mut [u8], field: usize, l4: L4, length: u32) -> u16 {
    let seed = Sum::default().number(word(segment, field).into()).number(length).value();
    let checksum = Sum::of(segment).number(length).checksum();
    // In UDP a zero would say "not summed".
    put16(segment, field, if checksum == 0 && l4 == L4::Udp { 0xffff } else { checksum });
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

/// The big-endian word at `at` of a header that is known to hold it.
pub(super) fn word(header: &[u8], at: usize) -> u16 {
    be16(header, at).unwrap_or(0)
}
