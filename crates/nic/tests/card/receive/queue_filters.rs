//! Tests the choice of a queue on a port without pools: ether type filters, SYN filter, five-tuple filters, RSS,
//! default queue, in this order (I210 datasheet 7.1.2 and figure 7-5). Registers are written as DPDK and Linux write
//! them.

use super::pf::{bench, queue_of};
use crate::common::{CardFixture, PORT, mac, plain, tagged, tcp, tcp6, udp};
use i82576::bits::{etqf, ftqf, imir, imirext, mrqc, rctl, rfctl, rxcsum, synqf};
use i82576::descriptor::rx::packet_type as kind;
use i82576::register as r;

const EAPOL: u32 = 0x888e;
const NOT_COMPARED: u32 = ftqf::ANY_POOL
    | ftqf::ANY_PROTOCOL
    | ftqf::ANY_SOURCE
    | ftqf::ANY_DESTINATION
    | ftqf::ANY_SOURCE_PORT
    | ftqf::QUEUE_ENABLE;

fn port() -> CardFixture {
    bench(rctl::SECRC)
}

/// Returns a frame for the port with the ether type `kind`.
fn of_type(kind: u32) -> Vec<u8> {
    let mut frame = plain(PORT, mac(9), 60);
    frame[12..14].copy_from_slice(&(kind as u16).to_be_bytes());
    frame
}

/// Returns a TCP segment with the given flags in byte 13 of its header.
fn flagged(flags: u8) -> Vec<u8> {
    let mut frame = tcp(PORT, mac(9), &[1; 50]);
    frame[47] = flags;
    frame
}

/// Writes five-tuple filter `i`, which selects `queue` and compares the fields `compared` (bits of FTQF).
fn tuple(bench: &mut CardFixture, i: u32, queue: u32, compared: u32) {
    bench.pf().write(r::ftqf(i), (NOT_COMPARED & !compared) | queue << ftqf::QUEUE_SHIFT);
    bench.pf().write(r::imir(i), imir::ANY_PORT);
    bench.pf().write(r::imirext(i), imirext::ANY_SIZE | imirext::ANY_FLAGS);
}

#[test]
fn ether_type_filter_selects_a_queue_and_sets_packet_type() {
    let mut bench = port();
    let filter = EAPOL | 11 << etqf::QUEUE_SHIFT | etqf::ENABLE | etqf::QUEUE_ENABLE;
    bench.pf().write(r::etqf(5), filter);
    assert_eq!(bench.pf().read(r::etqf(5)), filter);
    let (queue, back) = queue_of(&mut bench, &of_type(EAPOL));
    assert_eq!((queue, back.packet_type), (11, kind::ETHER_TYPE | 5));
    let (queue, back) = queue_of(&mut bench, &tagged(7, &of_type(EAPOL)));
    assert_eq!((queue, back.packet_type), (11, kind::ETHER_TYPE | 5), "the type behind a tag matches too");
    let (queue, back) = queue_of(&mut bench, &of_type(0x88cc));
    assert_eq!((queue, back.packet_type), (0, 0));
}

#[test]
fn ether_type_filter_without_a_queue_only_sets_packet_type() {
    let mut bench = port();
    bench.pf().write(r::etqf(1), EAPOL | 11 << etqf::QUEUE_SHIFT | etqf::ENABLE);
    let (queue, back) = queue_of(&mut bench, &of_type(EAPOL));
    assert_eq!((queue, back.packet_type), (0, kind::ETHER_TYPE | 1));
    bench.pf().write(r::etqf(1), EAPOL | 11 << etqf::QUEUE_SHIFT | etqf::QUEUE_ENABLE);
    let (queue, back) = queue_of(&mut bench, &of_type(EAPOL));
    assert_eq!((queue, back.packet_type), (0, 0));
}

#[test]
fn last_matching_ether_type_filter_selects_the_queue() {
    let mut bench = port();
    for (i, queue) in [(2, 9), (6, 4)] {
        let filter = EAPOL | queue << etqf::QUEUE_SHIFT | etqf::ENABLE | etqf::QUEUE_ENABLE;
        bench.pf().write(r::etqf(i), filter);
    }
    let (queue, back) = queue_of(&mut bench, &of_type(EAPOL));
    assert_eq!((queue, back.packet_type), (4, kind::ETHER_TYPE | 6));
}

#[test]
fn five_tuple_filter_compares_only_selected_fields() {
    let mut bench = port();
    // The frames of the bench go from 10.0.0.1:1000 to 10.0.0.2:2000.
    let (from, to) = (u32::from_le_bytes([10, 0, 0, 1]), u32::from_le_bytes([10, 0, 0, 2]));
    let (source, destination) = (u32::from(1000u16.to_be()), u32::from(2000u16.to_be()));
    let fields = [
        (ftqf::ANY_SOURCE, r::saqf(3), from),
        (ftqf::ANY_DESTINATION, r::daqf(3), to),
        (ftqf::ANY_SOURCE_PORT, r::spqf(3), source),
        (0, r::imir(3), destination),
    ];
    for (compared, register, right) in fields {
        for (value, expected) in [(right, 13), (right ^ 0x100, 0)] {
            tuple(&mut bench, 3, 13, compared);
            bench.pf().write(register, value);
            let (queue, back) = queue_of(&mut bench, &tcp(PORT, mac(9), &[1; 50]));
            assert_eq!(queue, expected, "{register:#x}");
            assert_eq!(back.packet_type, kind::IPV4 | kind::TCP, "the packet type names the headers");
        }
    }
    for (protocol, expected) in [(6, 0), (17, 13)] {
        tuple(&mut bench, 3, 13, ftqf::ANY_PROTOCOL);
        bench.pf().set(r::ftqf(3), protocol);
        assert_eq!(queue_of(&mut bench, &udp(PORT, mac(9), &[1; 50])).0, expected);
    }
}

#[test]
fn five_tuple_filters_match_only_ip_and_addresses_only_ipv4() {
    let mut bench = port();
    tuple(&mut bench, 0, 5, 0);
    assert_eq!(queue_of(&mut bench, &of_type(EAPOL)).0, 0);
    assert_eq!(queue_of(&mut bench, &tcp6(PORT, mac(9), &[1; 50])).0, 5);
    tuple(&mut bench, 0, 5, ftqf::ANY_SOURCE);
    bench.pf().write(r::saqf(0), 0xfdfd_fdfd);
    assert_eq!(queue_of(&mut bench, &tcp6(PORT, mac(9), &[1; 50])).0, 0);
}

#[test]
fn five_tuple_filter_compares_frame_size_and_tcp_flags() {
    let mut bench = port();
    let length = tcp(PORT, mac(9), &[1; 50]).len() as u32;
    for (size, expected) in [(length + 1, 5), (length, 0)] {
        tuple(&mut bench, 0, 5, 0);
        bench.pf().write(r::imirext(0), size | imirext::ANY_FLAGS);
        assert_eq!(queue_of(&mut bench, &tcp(PORT, mac(9), &[1; 50])).0, expected, "shorter than");
    }
    // Register and header name the flags in opposite order.
    for (bit, flag) in [(0, 0x20), (1, 0x10), (2, 0x08), (3, 0x04), (4, 0x02), (5, 0x01)] {
        bench.pf().write(r::imirext(0), imirext::ANY_SIZE | 1 << (imirext::FLAGS_SHIFT + bit));
        assert_eq!(queue_of(&mut bench, &flagged(flag | 0xc0)).0, 5);
        assert_eq!(queue_of(&mut bench, &flagged(!flag)).0, 0);
    }
}

#[test]
fn five_tuple_filters_rank_by_priority_then_number() {
    let mut bench = port();
    for (priorities, expected) in [([1, 2, 1], 6), ([2, 2, 2], 5), ([0, 1, 7], 7)] {
        for (i, priority) in (0..).zip(priorities) {
            tuple(&mut bench, i, 5 + i, 0);
            bench.pf().write(r::imir(i), imir::ANY_PORT | priority << imir::PRIORITY_SHIFT);
        }
        assert_eq!(queue_of(&mut bench, &tcp(PORT, mac(9), &[1; 50])).0, expected);
    }
}

#[test]
fn register_bit_ranks_syn_filter_against_five_tuple_filters() {
    let mut bench = port();
    bench.pf().write(r::SYNQF, synqf::QUEUE_ENABLE | 9 << synqf::QUEUE_SHIFT);
    assert_eq!(queue_of(&mut bench, &flagged(0x02)).0, 9);
    assert_eq!(queue_of(&mut bench, &flagged(0x12)).0, 9);
    assert_eq!(queue_of(&mut bench, &flagged(0x10)).0, 0);
    tuple(&mut bench, 0, 5, 0);
    assert_eq!(queue_of(&mut bench, &flagged(0x02)).0, 5, "RFCTL.SYNQFP is clear");
    bench.pf().write(r::RFCTL, rfctl::SYNQFP);
    assert_eq!(queue_of(&mut bench, &flagged(0x02)).0, 9);
    assert_eq!(queue_of(&mut bench, &flagged(0x10)).0, 5);
}

#[test]
fn ether_type_filter_outranks_five_tuple_and_rss() {
    let mut bench = port();
    bench.pf().write(r::RXCSUM, rxcsum::PCSD);
    bench.pf().write(r::MRQC, mrqc::RSS | 0x1ff << mrqc::HASH_TYPES_SHIFT | 6 << mrqc::DEFAULT_QUEUE_SHIFT);
    (0..32).for_each(|word| bench.pf().write(r::reta(word), 0x0303_0303));
    let segment = tcp(PORT, mac(9), &[1; 50]);
    assert_eq!(queue_of(&mut bench, &of_type(EAPOL)).0, 6, "without a hash DEF_Q decides");
    assert_eq!(queue_of(&mut bench, &segment).0, 3);
    tuple(&mut bench, 7, 12, 0);
    let (queue, back) = queue_of(&mut bench, &segment);
    assert_eq!((queue, back.rss_type), (12, 1), "the descriptor still has the hash");
    bench.pf().write(r::etqf(0), 0x0800 | 14 << etqf::QUEUE_SHIFT | etqf::ENABLE | etqf::QUEUE_ENABLE);
    assert_eq!(queue_of(&mut bench, &segment).0, 14);
    bench.pf().write(r::MRQC, 6 << mrqc::DEFAULT_QUEUE_SHIFT);
    assert_eq!(queue_of(&mut bench, &of_type(EAPOL)).0, 6, "without RSS DEF_Q decides");
}

#[test]
fn port_reset_disables_every_queue_filter() {
    let mut bench = port();
    tuple(&mut bench, 0, 5, 0);
    bench.pf().write(r::SYNQF, synqf::QUEUE_ENABLE | 9 << synqf::QUEUE_SHIFT);
    bench.pf().write(r::CTRL, i82576::bits::ctrl::RST);
    bench.pf().write(r::RCTL, rctl::EN | rctl::SECRC);
    assert_eq!(queue_of(&mut bench, &flagged(0x02)).0, 0);
}
