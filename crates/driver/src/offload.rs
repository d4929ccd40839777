//! Transmit offloads of a frame, and the headers that the card needs for them. Seeds the transport checksum with the
//! pseudo-header's sum, as an 82576 and an AVF require.
//!
//! Not supported: SCTP, tunnels, and segmentation of UDP. Each family encodes its descriptors elsewhere.

/// Offloads that a driver requests from the card for one frame to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxOffload {
    /// True to fill in the checksum of an IPv4 header.
    pub ip_checksum: bool,
    /// True to fill in the frame's TCP or UDP checksum.
    pub l4_checksum: bool,
    /// Number of payload bytes of a TCP segment; every segment then gets both checksums.
    pub tso: Option<u16>,
    /// VLAN tag to insert into the frame: priority, DEI, id.
    pub vlan: Option<u16>,
}

impl TxOffload {
    /// Returns true if the card needs to know the frame's headers for an offload.
    pub(crate) fn needs_headers(&self) -> bool {
        self.ip_checksum || self.l4_checksum || self.tso.is_some()
    }
}

/// Number of bytes at a frame's start that the driver searches for headers.
pub(crate) const HEADERS: usize = 192;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const VLAN: [u8; 2] = [0x81, 0x00];
/// Bytes of a VLAN tag (IEEE 802.1Q).
pub(crate) const VLAN_TAG: usize = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;
/// IPv6 extension headers with a standard length field: hop-by-hop, routing and destination options (IANA numbers).
const EXTENSIONS: [u8; 3] = [0, 43, 60];
const MAX_EXTENSIONS: usize = 4;

/// Lengths of a frame's headers in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeaderLengths {
    mac: usize,
    ip: usize,
    l4: usize,
    ipv4: bool,
    tcp: bool,
}

/// Returns the length of a frame's VLAN tag in bytes, or 0.
pub(crate) fn tag_bytes(frame: &[u8]) -> usize {
    if frame.get(12..14) == Some(&VLAN) { VLAN_TAG } else { 0 }
}

impl HeaderLengths {
    /// Parses the headers at a frame's start. Returns `None` if they are incomplete, or not TCP or UDP over IP.
    pub(crate) fn parse(frame: &[u8]) -> Option<Self> {
        let mac = if frame.get(12..14)? == VLAN { 18 } else { 14 };
        let kind: [u8; 2] = frame.get(mac - 2..mac)?.try_into().ok()?;
        let packet = frame.get(mac..)?;
        let (ip, protocol) = match kind {
            IPV4 => (usize::from(packet.first()? & 0xf) * 4, *packet.get(9)?),
            IPV6 => skip_extensions(packet)?,
            _ => return None,
        };
        let segment = packet.get(ip..).filter(|_| ip >= 20)?;
        let l4 = match protocol {
            TCP => usize::from(segment.get(12)? >> 4) * 4,
            UDP => 8,
            _ => return None,
        };
        let complete = segment.len() >= l4 && (protocol == UDP || l4 >= 20);
        complete.then_some(Self { mac, ip, l4, ipv4: kind == IPV4, tcp: protocol == TCP })
    }

    /// Returns the length of all headers of the frame, in bytes.
    pub(crate) fn total(&self) -> usize {
        self.mac + self.ip + self.l4
    }

    /// Returns true if the IP header is of version 4, which has a checksum.
    pub(crate) fn is_ipv4(&self) -> bool {
        self.ipv4
    }

    /// Returns true if the transport is TCP, whose payload can be segmented.
    pub(crate) fn is_tcp(&self) -> bool {
        self.tcp
    }

    /// Returns the bytes before the IP header, of the IP header, and of the transport header.
    pub(crate) fn lengths(&self) -> (usize, usize, usize) {
        (self.mac, self.ip, self.l4)
    }

    /// Prepares `head`, the frame's first [`HeaderLengths::total`] bytes, for the card: clears the IPv4 checksum, seeds
    /// the transport's with the pseudo-header's sum, and omits the IP length for segmentation.
    pub(crate) fn prepare(&self, head: &mut [u8], frame_length: usize, offload: &TxOffload) {
        let segment = offload.tso.is_some();
        let (ip_header, l4_header) = head[self.mac..].split_at_mut(self.ip);
        if self.ipv4 && (offload.ip_checksum || segment) {
            ip_header[10..12].fill(0);
        }
        if offload.l4_checksum || segment {
            let length = if segment { 0 } else { frame_length - self.mac - self.ip };
            let seed = self.pseudo_header(ip_header, length as u32);
            let field = if self.tcp { 16 } else { 6 };
            l4_header[field..field + 2].copy_from_slice(&seed.to_be_bytes());
        }
        if segment {
            let field = if self.ipv4 { 2 } else { 4 };
            ip_header[field..field + 2].fill(0);
        }
    }

    /// Returns the sum over a pseudo-header (addresses, protocol and length), not complemented.
    fn pseudo_header(&self, ip_header: &[u8], length: u32) -> u16 {
        let addresses = if self.ipv4 { &ip_header[12..20] } else { &ip_header[8..40] };
        let words = addresses.chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
        let protocol = if self.tcp { TCP } else { UDP };
        let mut sum = words.sum::<u32>() + u32::from(protocol) + (length >> 16) + (length & 0xffff);
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }
}

fn skip_extensions(packet: &[u8]) -> Option<(usize, u8)> {
    let (mut at, mut next) = (40, *packet.get(6)?);
    for _ in 0..MAX_EXTENSIONS {
        if !EXTENSIONS.contains(&next) {
            break;
        }
        next = *packet.get(at)?;
        at += 8 + usize::from(*packet.get(at + 1)?) * 8;
    }
    Some((at, next))
}

#[cfg(test)]
mod tests {
    use super::{HeaderLengths, TxOffload};

    fn ipv4_udp(payload: usize) -> [u8; 64] {
        let mut frame = [0; 64];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[16..18].copy_from_slice(&((28 + payload) as u16).to_be_bytes());
        frame[23] = 17;
        frame[26..30].copy_from_slice(&[10, 0, 0, 1]);
        frame[30..34].copy_from_slice(&[10, 0, 0, 2]);
        frame
    }

    #[test]
    fn checksum_field_starts_with_the_pseudo_header_sum() {
        let mut frame = ipv4_udp(22);
        let headers = HeaderLengths::parse(&frame).unwrap();
        let offload = TxOffload { l4_checksum: true, ip_checksum: true, ..TxOffload::default() };
        headers.prepare(&mut frame, 64, &offload);
        // Sum: 0a00 + 0001 + 0a00 + 0002 + 17 + 30.
        assert_eq!(frame[40..42], (0x1403u16 + 17 + 30).to_be_bytes());
        assert_eq!(headers.lengths(), (14, 20, 8));
        assert!(headers.is_ipv4() && !headers.is_tcp());
    }

    #[test]
    fn offload_of_incomplete_headers_is_refused() {
        let frame = ipv4_udp(0);
        for length in 0..42 {
            assert_eq!(HeaderLengths::parse(&frame[..length]), None, "{length}");
        }
        assert_eq!(HeaderLengths::parse(&frame[..42]).unwrap().total(), 42);
    }

    #[test]
    fn offload_of_an_ipv4_header_below_20_bytes_is_refused() {
        let mut frame = ipv4_udp(0);
        frame[14] = 0x41;
        assert_eq!(HeaderLengths::parse(&frame), None);
    }

    #[test]
    fn offload_request_counts_ipv6_extensions_as_ip_header() {
        let mut frame = [0; 128];
        frame[12..14].copy_from_slice(&[0x86, 0xdd]);
        frame[14] = 0x60;
        frame[20] = 0;
        frame[54] = 6;
        frame[54 + 8 + 12] = 0x50;
        let headers = HeaderLengths::parse(&frame).unwrap();
        assert_eq!((headers.ip, headers.l4, headers.ipv4), (48, 20, false));
    }
}
