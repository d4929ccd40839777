//! Bug 15 of another 82576 model: UDP had no RSS types, and SCTP's checksum was not inserted and not
//! verified.

use crate::common::{CardFixture, mac, packet, udp};
use etherparse::PacketBuilder;
use i82576::bits::{mrqc, rxcsum};
use i82576::descriptor::rx::{packet_type, rss_type, status};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor, L4PacketType};
use i82576::register as r;

fn udp6() -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(mac(9).0, mac(0).0).ipv6([0xfd; 16], [0xfe; 16], 64);
    let mut frame = Vec::new();
    builder.udp(1000, 2000).write(&mut frame, &[7; 20]).unwrap();
    frame
}

/// Returns a datagram of UDP over IPv6 behind a destination options header.
fn extended() -> Vec<u8> {
    let mut frame = udp6();
    frame.splice(54..54, [17, 0, 1, 4, 0, 0, 0, 0]);
    frame[20] = 60;
    frame[19] += 8;
    frame
}

#[test]
fn udp_ports_are_hashed_only_if_a_udp_rss_type_is_enabled() {
    let mut bench = CardFixture::new(1);
    bench.vf(0).start();
    bench.pf().write(r::RXCSUM, rxcsum::PCSD);
    (0..10).for_each(|word| bench.pf().write(r::rssrk(word), 0x1234_5678 + word));
    let mut told = |types: u32, frame: &[u8]| {
        bench.pf().write(r::MRQC, mrqc::VMDQ_RSS | types << mrqc::HASH_TYPES_SHIFT);
        bench.wire_sends(frame);
        let received = bench.vf(0).expect_frame();
        (received.last().rss_type, received.last().hash != 0)
    };
    for (frame, bit, kind, by_address) in [
        (udp(mac(0), mac(9), &[7; 20]), 1 << 6, rss_type::UDP_IPV4, rss_type::IPV4),
        (udp6(), 1 << 7, rss_type::UDP_IPV6, rss_type::IPV6),
        (extended(), 1 << 8, rss_type::UDP_IPV6_EX, rss_type::IPV6_EX),
    ] {
        assert_eq!(told(bit, &frame), (kind, true));
        assert_eq!(told(0x1ff, &frame), (kind, true));
        assert_eq!(told(0x03f, &frame), (by_address, true), "without the UDP types addresses are hashed");
        assert_eq!(told(0, &frame), (rss_type::NONE, false));
    }
}

/// Returns an SCTP packet over IPv4 or IPv6 without its checksum, and the length of its IP header.
fn sctp(six: bool) -> (Vec<u8>, u16) {
    let packet = [&[0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0][..], &[7; 32]].concat();
    let builder = PacketBuilder::ethernet2(mac(0).0, mac(1).0);
    let mut frame = Vec::new();
    if six {
        let builder = builder.ipv6([0xfd; 16], [0xfe; 16], 64);
        builder.write(&mut frame, 132.into(), &packet).unwrap();
        (frame, 40)
    } else {
        let builder = builder.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        builder.write(&mut frame, 132.into(), &packet).unwrap();
        (frame, 20)
    }
}

#[test]
fn sctp_checksum_is_inserted_and_verified() {
    for six in [false, true] {
        let mut bench = CardFixture::new(2);
        bench.vf(0).start();
        bench.vf(1).start();
        bench.pf().write(r::RXCSUM, rxcsum::CRCOFL | rxcsum::PCSD);
        let (frame, ip_length) = sctp(six);
        let address = bench.vf(0).place(&frame);
        let context = AdvancedContextDescriptor {
            mac_length: 14,
            ip_length,
            l4: L4PacketType::Sctp,
            ipv4: !six,
            ..AdvancedContextDescriptor::default()
        };
        let ask = AdvancedDataDescriptor { insert_l4_checksum: true, ..packet(address, frame.len() as u16) };
        bench.vf(0).transmit(&[context.emit(), ask.emit()]);
        let sent = bench.vf(1).expect_frame();
        assert_ne!(sent.last().packet_type & packet_type::SCTP, 0);
        assert_eq!(sent.last().status & (status::L4CS | status::L4E), status::L4CS);
        // The same frame from the wire, where the card has no seal and sums it up itself.
        bench.wire_sends(&sent.bytes);
        assert_eq!(bench.vf(1).expect_frame().last().status & (status::L4CS | status::L4E), status::L4CS);
        let mut spoiled = sent.bytes;
        *spoiled.last_mut().unwrap() ^= 1;
        bench.wire_sends(&spoiled);
        let both = status::L4CS | status::L4E;
        assert_eq!(bench.vf(1).expect_frame().last().status & both, both);
    }
}
