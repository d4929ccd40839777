//! Tests of packets from the kernel before segmentation, and of headers that do not match them.

use super::*;
use proptest::prelude::{any, proptest};

const PAYLOAD: usize = 4_000;

/// Returns a TCP packet before segmentation, over IPv6 or IPv4, with `tags` VLAN tags, and the offset of its TCP
/// header.
fn packet(six: bool, tags: usize) -> (Vec<u8>, usize) {
    let mut packet = vec![2; 12];
    for _ in 0..tags {
        packet.extend([0x81, 0, 0, 5]);
    }
    let tcp_length = (20 + PAYLOAD) as u16;
    if six {
        packet.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        packet.extend(tcp_length.to_be_bytes());
        packet.extend([6, 64]);
        packet.extend([0xfd; 32]);
    } else {
        packet.extend([8, 0, 0x45, 0]);
        packet.extend((20 + tcp_length).to_be_bytes());
        packet.extend([0, 9, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    }
    let tcp = packet.len();
    packet.extend([0, 1, 0, 2, 0, 0, 0, 100, 0, 0, 0, 0, 0x50, 0x18, 1, 0, 0xaa, 0xaa, 0, 0]);
    packet.extend((0..PAYLOAD).map(|n| n as u8));
    (packet, tcp)
}

fn arrive(bytes: &[u8], header: &VnetHeader) -> Result<KernelPacket, VnetHeaderError> {
    let mut arrival = KernelPacket::default();
    arrival.place()[..bytes.len()].copy_from_slice(bytes);
    arrival.put(bytes.len(), header).map(|()| arrival)
}

fn frames(arrival: &mut KernelPacket) -> Vec<Vec<u8>> {
    let mut place = vec![0; 9728];
    std::iter::from_fn(|| arrival.take(&mut place).map(|length| place[..length].to_vec())).collect()
}

fn tcp_of(segments: GsoType) -> VnetHeader {
    VnetHeader { checksum: Some((34, 16)), segments, headers: 54, size: 1448 }
}

/// Returns the Internet checksum's sum over a TCP segment and its pseudo header, 0xffff for a correct segment.
fn sum(frame: &[u8], tcp: usize, six: bool) -> u16 {
    let addresses = if six { tcp - 32..tcp } else { tcp - 8..tcp };
    PartialChecksum::of(&frame[addresses])
        .number(6)
        .number((frame.len() - tcp) as u32)
        .bytes(&frame[tcp..])
        .value()
}

#[test]
fn large_uplink_packet_is_available_whole_until_segmented() {
    let (packet, _) = packet(false, 0);
    let mut arrival = arrive(&packet, &tcp_of(GsoType::TcpV4)).unwrap();
    let (whole, layout) = arrival.uncut().unwrap();
    assert_eq!((whole.len(), layout.payload), (HEADROOM + packet.len(), 54));
    assert_eq!(whole[HEADROOM..][..40], packet[..40]);
    arrival.take(&mut [0; 9728]).unwrap();
    assert!(arrival.uncut().is_none());
    let mut frame = arrive(&packet[..200], &VnetHeader::default()).unwrap();
    assert!(frame.uncut().is_none() && !frame.is_empty());
}

#[test]
fn large_uplink_packet_arrives_as_its_segments() {
    for (six, tags) in [(false, 0), (true, 0), (false, 1), (true, 2)] {
        let (packet, tcp) = packet(six, tags);
        let header = tcp_of(if six { GsoType::TcpV6 } else { GsoType::TcpV4 });
        let mut arrival = arrive(&packet, &header).unwrap();
        let frames = frames(&mut arrival);
        assert_eq!(frames.iter().map(Vec::len).collect::<Vec<_>>(), [1448, 1448, 1104].map(|n| tcp + 20 + n));
        for (n, frame) in frames.iter().enumerate() {
            assert_eq!(sum(frame, tcp, six), 0xffff, "the checksum of segment {n}");
            assert_eq!(frame[tcp + 4..tcp + 8], (100 + 1448 * n as u32).to_be_bytes());
            assert_eq!(frame[tcp + 13], if n == 2 { 0x18 } else { 0x10 }, "only the last segment has PSH");
        }
        let payload: Vec<u8> = frames.iter().flat_map(|frame| frame[tcp + 20..].to_vec()).collect();
        assert_eq!(payload, packet[tcp + 20..]);
    }
}

#[test]
fn missing_checksum_of_an_uplink_frame_is_completed() {
    let (mut bytes, tcp) = packet(false, 0);
    let pseudo = PartialChecksum::of(&bytes[26..34]).number(6).number((bytes.len() - tcp) as u32).value();
    bytes[tcp + 16..tcp + 18].copy_from_slice(&pseudo.to_be_bytes());
    let header = VnetHeader { checksum: Some((tcp as u16, 16)), ..VnetHeader::default() };
    let frames = frames(&mut arrive(&bytes, &header).unwrap());
    assert_eq!((frames.len(), sum(&frames[0], tcp, false)), (1, 0xffff));
    // A sum of zero would mean that there is no checksum.
    let zero = VnetHeader { checksum: Some((0, 0)), ..VnetHeader::default() };
    assert_eq!(self::frames(&mut arrive(&[0xff; 60], &zero).unwrap())[0][..2], [0xff; 2]);
}

#[test]
fn virtio_net_header_beyond_the_frame_is_refused() {
    for (start, offset) in [(60, 0), (61, 0), (50, 9), (50, 60_000), (60_000, 6), (u16::MAX, u16::MAX)] {
        let header = VnetHeader { checksum: Some((start, offset)), ..VnetHeader::default() };
        assert_eq!(arrive(&[1; 60], &header).unwrap_err(), VnetHeaderError, "{start} {offset}");
    }
}

#[test]
fn virtio_net_header_contradicting_the_packet_is_refused() {
    let (bytes, tcp) = packet(false, 0);
    let absurd = [
        VnetHeader { size: 0, ..tcp_of(GsoType::TcpV4) },
        VnetHeader { size: 1, ..tcp_of(GsoType::TcpV4) },
        VnetHeader { size: 9_800, ..tcp_of(GsoType::TcpV4) },
        tcp_of(GsoType::TcpV6),
        tcp_of(GsoType::Other(3)),
        tcp_of(GsoType::Other(5)),
    ];
    for header in absurd {
        let refused = arrive(&bytes, &header);
        // A segment size above the packet's length makes one frame, no longer than the card accepts.
        assert!(refused.is_err() || header.size == 9_800, "{header:?}");
    }
    for length in 0..tcp + 20 {
        assert!(arrive(&bytes[..length], &tcp_of(GsoType::TcpV4)).is_err(), "cut to {length} bytes");
    }
    for (at, bits) in
        [(12, 1), (14, 0x30), (14, 0x0f), (16, 0x40), (17, 1), (20, 0x20), (23, 0x17), (tcp + 12, 0x40)]
    {
        let mut changed = bytes.clone();
        changed[at] ^= bits;
        assert!(arrive(&changed, &tcp_of(GsoType::TcpV4)).is_err(), "byte {at}");
    }
}

#[test]
fn discarded_large_packet_yields_no_further_segments() {
    let (bytes, _) = packet(false, 0);
    let mut arrival = arrive(&bytes, &tcp_of(GsoType::TcpV4)).unwrap();
    assert!(arrival.take(&mut [0; 9728]).is_some());
    arrival.forget();
    assert_eq!(arrival.take(&mut [0; 9728]), None);
    let mut arrival = arrive(&bytes, &tcp_of(GsoType::TcpV4)).unwrap();
    assert_eq!(arrival.take(&mut [0; 100]), None, "a buffer without room for a frame gets none");
    assert_eq!(arrival.take(&mut [0; 9728]), None);
}

proptest! {
    #[test]
    fn any_virtio_net_header_makes_a_bounded_count_of_frames(
        raw in any::<[u8; VnetHeader::SIZE]>(),
        six: bool,
        tags in 0usize..3,
        turned in proptest::collection::vec((0usize..90, any::<u8>()), 0..4),
        cut in 0usize..4_100,
        size in proptest::option::of(0u16..3_000),
    ) {
        let (mut bytes, _) = packet(six, tags);
        for (at, bits) in turned {
            bytes[at] ^= bits;
        }
        let mut header = VnetHeader::parse(&raw);
        header.size = size.unwrap_or(header.size);
        bytes.truncate(bytes.len() - cut.min(bytes.len()).saturating_sub(100));
        if let Ok(mut arrival) = arrive(&bytes, &header) {
            let frames = frames(&mut arrival);
            assert!((1..=2048).contains(&frames.len()));
            assert!(frames.iter().all(|frame| frame.len() <= 9728));
        }
    }
}
