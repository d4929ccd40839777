//! TCP packets of a station at the uplink, segmented and not, made by a library that is not the product.

use etherparse::{IpHeaders, IpNumber, Ipv4Header, Ipv6Header, PacketBuilder, VlanId};
use offload::uncut;
use plane::UnsegmentedPacketLayout;
use plane::frame::HEADROOM;
use units::MacAddress;

/// Longest frame of a card in bytes.
pub const LONGEST: usize = 9_724;
/// Sequence number of a flow's first byte, which wraps soon.
const FIRST: u32 = u32::MAX - 5_000;

/// Flow of TCP bytes from a station.
#[derive(Debug, Clone, Copy)]
pub struct TcpFlow {
    /// Source address.
    pub from: MacAddress,
    /// Destination address.
    pub to: MacAddress,
    /// True for IPv6, false for IPv4.
    pub is_ipv6: bool,
    /// True for frames of VLAN 7.
    pub is_tagged: bool,
    /// Source port.
    pub port: u16,
    /// Number of payload bytes.
    pub length: usize,
    /// Payload bytes of a segment.
    pub mss: u16,
    /// True if the last segment has PSH.
    pub pushes: bool,
}

impl TcpFlow {
    /// Returns the segments of the flow.
    #[must_use]
    pub fn segments(&self) -> Vec<Vec<u8>> {
        let count = self.length.div_ceil(self.mss.into());
        (0..count).map(|n| self.packet(n, self.mss.into(), n + 1 == count)).collect()
    }

    /// Returns the flow in one packet, as a kernel passes it on, behind headroom, with its layout. Returns `None` if
    /// the flow has one segment only.
    #[must_use]
    pub fn whole(&self) -> Option<(Vec<u8>, UnsegmentedPacketLayout)> {
        let mut packet = [&[0; HEADROOM], &self.packet(0, self.length, true)[..]].concat();
        let layout = uncut::arrived(&mut packet[HEADROOM..], !self.is_ipv6, self.mss, LONGEST)?;
        (self.length > self.mss.into()).then_some((packet, layout))
    }

    /// Returns the `n`th packet of the flow if each has `size` bytes of payload.
    fn packet(&self, n: usize, size: usize, last: bool) -> Vec<u8> {
        let payload: Vec<u8> =
            (n * size..self.length.min((n + 1) * size)).map(|at| (at * 7 + at / 256) as u8).collect();
        let link = PacketBuilder::ethernet2(self.from.0, self.to.0);
        let ip = if self.is_ipv6 {
            let header =
                Ipv6Header { hop_limit: 64, source: [2; 16], destination: [3; 16], ..Ipv6Header::default() };
            IpHeaders::Ipv6(header, Default::default())
        } else {
            let header =
                Ipv4Header::new(0, 64, IpNumber::TCP, [10, 0, 0, 5], [10, 0, 0, 1]).expect("no payload yet");
            IpHeaders::Ipv4(
                Ipv4Header { identification: n as u16, dont_fragment: true, ..header },
                Default::default(),
            )
        };
        let ip = match self.is_tagged {
            true => link.single_vlan(VlanId::try_new(7).expect("a VLAN")).ip(ip),
            false => link.ip(ip),
        };
        let tcp = ip.tcp(self.port, 80, FIRST.wrapping_add((n * size) as u32), 1_000).ack(9);
        let tcp = if last && self.pushes { tcp.psh() } else { tcp };
        let mut packet = Vec::new();
        tcp.write(&mut packet, &payload).expect("a vector takes all bytes");
        packet
    }
}

/// Returns the segments of a packet that a driver has received with a segment size, or nothing if it cannot be cut.
#[must_use]
pub fn cut(packet: &[u8], ipv4: bool, mss: u16) -> Vec<Vec<u8>> {
    let (mut packet, mut place, mut frames) = (packet.to_vec(), vec![0; LONGEST], Vec::new());
    let layout = uncut::arrived(&mut packet, ipv4, mss, LONGEST);
    let segments = layout.and_then(|layout| uncut::segments(&layout, &packet).ok());
    let Some(mut segments) = segments else { return frames };
    while let Some(length) = segments.write_next(&mut place) {
        frames.push(place[..length].to_vec());
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::{TcpFlow, cut};
    use plane::frame::HEADROOM;
    use units::MacAddress;

    #[test]
    fn whole_packet_is_cut_into_the_segments_of_its_flow() {
        let [from, to] = [5, 1].map(|n| MacAddress([2, 0, 0, 0, 0, n]));
        for shape in 0..8 {
            let [is_ipv6, is_tagged, pushes] = [1, 2, 4].map(|bit| shape & bit != 0);
            let flow = TcpFlow { from, to, is_ipv6, is_tagged, port: 1, length: 6_001, mss: 1_000, pushes };
            let (packet, layout) = flow.whole().expect("a packet of several segments");
            assert_eq!((layout.ipv4, layout.mss), (!is_ipv6, 1_000));
            assert_eq!(cut(&packet[HEADROOM..], !is_ipv6, 1_000), flow.segments());
        }
        let flow =
            TcpFlow { from, to, is_ipv6: false, is_tagged: false, port: 1, length: 9, mss: 9, pushes: true };
        assert!(flow.whole().is_none());
    }
}
