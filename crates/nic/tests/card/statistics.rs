//! The statistics registers: the port's, which count what crosses the wire and are cleared by reading, and a
//! VF's, which count its own frames and only ever grow.

use crate::common::{Bench, mac, plain};
use i82576::MacAddress;
use i82576::register::{self as r, vf, vf_stats};

const ALL: MacAddress = MacAddress::BROADCAST;
const GROUP: MacAddress = MacAddress([0x01, 0, 0x5e, 0, 0, 1]);

fn bench() -> Bench {
    let mut bench = Bench::new(3);
    bench.vf(0).start();
    bench.vf(1).start();
    bench.pf().write(r::vmolr(1), crate::common::POOL | i82576::bits::vmolr::MPME);
    bench
}

/// A VF's packets and octets, received and sent, and its multicasts.
fn totals(bench: &mut Bench, vf: u8) -> [u32; 5] {
    [vf::VFGPRC, vf::VFGORC, vf::VFGPTC, vf::VFGOTC, vf::VFMPRC].map(|at| bench.vf(vf).read(at))
}

/// Of these, what came from or went to neighbours.
fn loopback(bench: &mut Bench, vf: u8) -> [u32; 4] {
    [vf::VFGPRLBC, vf::VFGORLBC, vf::VFGPTLBC, vf::VFGOTLBC].map(|at| bench.vf(vf).read(at))
}

#[test]
fn a_vf_counts_packets_and_octets_with_their_check_sequence() {
    let mut bench = bench();
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    bench.vf(0).send(&plain(mac(9), mac(0), 186));
    assert_eq!(totals(&mut bench, 0), [1, 104, 1, 204, 0]);
    assert_eq!(totals(&mut bench, 0), [1, 104, 1, 204, 0], "reading clears nothing");
    assert_eq!(loopback(&mut bench, 0), [0; 4]);
    assert_eq!(totals(&mut bench, 1), [0; 5]);
}

#[test]
fn frames_between_vfs_count_as_loopback_too() {
    let mut bench = bench();
    bench.vf(0).send(&plain(mac(1), mac(0), 86));
    assert_eq!(totals(&mut bench, 0), [0, 0, 1, 104, 0]);
    assert_eq!(loopback(&mut bench, 0), [0, 0, 1, 104]);
    assert_eq!(totals(&mut bench, 1), [1, 104, 0, 0, 0]);
    assert_eq!(loopback(&mut bench, 1), [1, 104, 0, 0]);
    assert_eq!((bench.pf().read(r::GPRC), bench.pf().read(r::GPTC)), (0, 0), "nothing crossed the wire");
}

#[test]
fn multicasts_are_counted_and_broadcasts_are_none() {
    let mut bench = bench();
    bench.wire_sends(&plain(GROUP, mac(9), 60));
    bench.wire_sends(&plain(ALL, mac(9), 60));
    assert_eq!(totals(&mut bench, 1), [2, 156, 0, 0, 1]);
    assert_eq!(bench.vf(1).read(0x0f38), 1, "at the other offset that drivers know");
    assert_eq!(bench.pf().read(r::vf_block(crate::common::index(1)) + vf_stats::VFMPRC), 1);
    assert_eq!((bench.pf().read(r::MPRC), bench.pf().read(r::BPRC)), (1, 1));
}

#[test]
fn what_was_missed_is_not_counted_as_received() {
    let mut bench = bench();
    bench.vf(0).write(vf::RX_BLOCK + r::rx::RDT, 0);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    assert_eq!(totals(&mut bench, 0), [0; 5]);
}

#[test]
fn a_vfs_counters_wrap_at_32_bits() {
    let mut bench = bench();
    let frame = plain(mac(1), mac(0), 9000);
    let address = bench.vf(0).place(&frame);
    let descriptor = crate::common::packet(address, frame.len() as u16).emit();
    let length = u64::from(frame.len() as u32 + 4);
    let rounds = (1u64 << 32) / length / 63 + 2;
    // Nobody receives: only the sender's counters matter here.
    bench.pf().write(r::VFRE, 0);
    for _ in 0..rounds {
        bench.vf(0).transmit(&[descriptor; 63]);
        bench.world.bus.log.clear();
    }
    let sent = rounds * 63;
    assert!(sent * length > 1 << 32);
    assert_eq!(totals(&mut bench, 0), [0, 0, sent as u32, (sent * length) as u32, 0]);
}

#[test]
fn the_ports_counters_are_cleared_by_reading() {
    let mut bench = bench();
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    bench.vf(0).send(&plain(mac(9), mac(0), 186));
    bench.vf(0).send(&plain(GROUP, mac(0), 46));
    bench.vf(0).send(&plain(ALL, mac(0), 46));
    for (at, expected) in
        [(r::GPRC, 1), (r::TPR, 1), (r::GPTC, 3), (r::TPT, 3), (r::MPTC, 1), (r::BPTC, 1), (r::MPRC, 0)]
    {
        assert_eq!(bench.pf().read(at), expected, "{at:#x}");
        assert_eq!(bench.pf().read(at), 0, "{at:#x}");
    }
}

#[test]
fn of_a_pair_the_low_half_stays_until_the_high_half_is_read() {
    let mut bench = bench();
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    for (low, high) in [(r::GORCL, r::GORCH), (r::TORL, r::TORH)] {
        assert_eq!((bench.pf().read(low), bench.pf().read(low)), (104, 104));
        assert_eq!(bench.pf().read(high), 0);
        assert_eq!(bench.pf().read(low), 0);
    }
}

#[test]
fn the_owners_counters_tell_the_same_story() {
    let mut bench = bench();
    bench.vf(0).send(&plain(mac(1), mac(0), 86));
    bench.vf(0).send(&plain(mac(0), mac(0), 86));
    let [sender, receiver, ..] = bench.nic.counters();
    assert_eq!((sender.tx_packets, sender.tx_bytes, sender.tx_unclaimed), (2, 200, 1));
    assert_eq!((receiver.rx_packets, receiver.rx_bytes), (1, 100));
}
