//! Sample frames. VF n has the address 02:00:00:00:00:0n.

use etherparse::PacketBuilder;
use i82576::MacAddress;

/// Returns the MAC address of VF `n`.
pub(crate) const fn mac(n: u8) -> MacAddress {
    MacAddress([0x02, 0, 0, 0, 0, n])
}

/// Returns a frame of an experimental ether type with `payload` bytes that count up.
pub(crate) fn plain(dst: MacAddress, src: MacAddress, payload: usize) -> Vec<u8> {
    let mut frame = [dst.0, src.0].concat();
    frame.extend([0x88, 0xb5]);
    frame.extend((0..payload).map(|i| i as u8));
    frame
}

/// Returns the frame with an 802.1Q tag inserted.
pub(crate) fn tagged(tag: u16, frame: &[u8]) -> Vec<u8> {
    let tag = [[0x81, 0x00], tag.to_be_bytes()].concat();
    [&frame[..12], &tag, &frame[12..]].concat()
}

/// Returns a segment of TCP over IPv4, ports 1000 to 2000, sequence number 5000, PSH set.
pub(crate) fn tcp(dst: MacAddress, src: MacAddress, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(src.0, dst.0).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    let mut frame = Vec::new();
    builder.tcp(1000, 2000, 5000, 8000).psh().write(&mut frame, payload).unwrap();
    frame
}

/// Returns a segment of TCP over IPv6.
pub(crate) fn tcp6(dst: MacAddress, src: MacAddress, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(src.0, dst.0).ipv6([0xfd; 16], [0xfe; 16], 64);
    let mut frame = Vec::new();
    builder.tcp(1000, 2000, 5000, 8000).write(&mut frame, payload).unwrap();
    frame
}

/// Returns a datagram of UDP over IPv4, ports 1000 to 2000.
pub(crate) fn udp(dst: MacAddress, src: MacAddress, payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(src.0, dst.0).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
    let mut frame = Vec::new();
    builder.udp(1000, 2000).write(&mut frame, payload).unwrap();
    frame
}
