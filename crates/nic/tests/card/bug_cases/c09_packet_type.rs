//! Case 9: packet types were encoded wrongly, and UDP, SCTP and IPv6 with extensions had none.

use crate::common::{BASE, Bench, mac, tcp, tcp6, udp};

/// The packet type bits of the first dword, where the datasheet has them.
fn told(frame: &[u8]) -> u32 {
    let mut bench = Bench::new(1);
    bench.vf(0).start();
    bench.wire_sends(frame);
    let raw: [u8; 4] = bench.vf(0).peek(BASE, 4).try_into().unwrap();
    u32::from_le_bytes(raw) & 0xffff
}

/// IPv6 with a destination options header before TCP.
fn extended() -> Vec<u8> {
    let mut frame = tcp6(mac(0), mac(9), &[7; 20]);
    frame.splice(54..54, [6, 0, 1, 4, 0, 0, 0, 0]);
    frame[20] = 60;
    frame[19] += 8;
    frame
}

/// IPv4 with four bytes of options.
fn with_options() -> Vec<u8> {
    let mut frame = udp(mac(0), mac(9), &[7; 20]);
    frame.splice(34..34, [1; 4]);
    frame[14] = 0x46;
    frame[17] += 4;
    frame
}

#[test]
fn packet_types_are_where_drivers_look_for_them() {
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
        assert_eq!(told(&frame), expected);
    }
}
