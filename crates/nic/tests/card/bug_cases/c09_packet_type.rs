//! Bug 9 of another 82576 model: packet types were encoded wrongly, and UDP, SCTP and IPv6 with extensions
//! had none.

use crate::common::{BASE, CardFixture, mac, tcp, tcp6, udp};

/// Returns the packet type bits of the descriptor's first dword, at their place in the datasheet.
fn packet_type(frame: &[u8]) -> u32 {
    let mut bench = CardFixture::new(1);
    bench.vf(0).start();
    bench.wire_sends(frame);
    let raw: [u8; 4] = bench.vf(0).peek(BASE, 4).try_into().unwrap();
    u32::from_le_bytes(raw) & 0xffff
}

/// Returns an IPv6 frame with a destination options header before TCP.
fn extended() -> Vec<u8> {
    let mut frame = tcp6(mac(0), mac(9), &[7; 20]);
    frame.splice(54..54, [6, 0, 1, 4, 0, 0, 0, 0]);
    frame[20] = 60;
    frame[19] += 8;
    frame
}

/// Returns an IPv4 frame with four bytes of options.
fn with_options() -> Vec<u8> {
    let mut frame = udp(mac(0), mac(9), &[7; 20]);
    frame.splice(34..34, [1; 4]);
    frame[14] = 0x46;
    frame[17] += 4;
    frame
}

#[test]
fn packet_type_bits_match_the_datasheet() {
    let mut sctp = tcp(mac(0), mac(9), &[7; 20]);
    sctp[23] = 132;
    let mut unknown = sctp.clone();
    unknown[23] = 1;
    for (frame, expected) in [
        (tcp(mac(0), mac(9), &[]), 0x110),
        (udp(mac(0), mac(9), &[]), 0x210),
        (with_options(), 0x230),
        (sctp, 0x410),
        (unknown, 0x010),
        (tcp6(mac(0), mac(9), &[]), 0x140),
        (extended(), 0x1c0),
        (crate::common::plain(mac(0), mac(9), 60), 0),
    ] {
        assert_eq!(packet_type(&frame), expected);
    }
}
