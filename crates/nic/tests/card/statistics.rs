//! Tests the statistics registers. The port's count frames on the wire and are cleared by reading. A VF's count its own
//! frames and wrap.

use crate::common::{CardFixture, index, mac, plain};
use i82576::MacAddress;
use i82576::PoolIndex;
use i82576::bits::{ctrl, icr, rctl, rfctl, srrctl, vt_ctl};
use i82576::config::pf::SRIOV;
use i82576::ids::MAX_FRAME;
use i82576::register::{self as r, vf, vf_stats};
use pcie::Function::{Pf, Vf};
use pcie::capability::sriov;

const ALL: MacAddress = MacAddress::BROADCAST;
const GROUP: MacAddress = MacAddress([0x01, 0, 0x5e, 0, 0, 1]);

fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start();
    bench.vf(1).start();
    bench.pf().write(r::vmolr(PoolIndex::EVERY[1]), crate::common::POOL | i82576::bits::vmolr::MPME);
    bench
}

/// Returns a VF's received packets and octets, sent packets and octets, and received multicasts.
fn totals(bench: &mut CardFixture, vf: u8) -> [u32; 5] {
    [vf::VFGPRC, vf::VFGORC, vf::VFGPTC, vf::VFGOTC, vf::VFMPRC].map(|at| bench.vf(vf).read(at))
}

/// Returns a VF's packets and octets from and to neighbours (loopback).
fn loopback(bench: &mut CardFixture, vf: u8) -> [u32; 4] {
    [vf::VFGPRLBC, vf::VFGORLBC, vf::VFGPTLBC, vf::VFGOTLBC].map(|at| bench.vf(vf).read(at))
}

#[test]
fn vf_octet_counters_include_the_frame_check_sequence() {
    let mut bench = bench();
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    bench.vf(0).send(&plain(mac(9), mac(0), 186));
    assert_eq!(totals(&mut bench, 0), [1, 104, 1, 204, 0]);
    assert_eq!(totals(&mut bench, 0), [1, 104, 1, 204, 0], "a read clears nothing");
    assert_eq!(loopback(&mut bench, 0), [0; 4]);
    assert_eq!(totals(&mut bench, 1), [0; 5]);
}

#[test]
fn frames_between_vfs_also_count_as_loopback() {
    let mut bench = bench();
    bench.vf(0).send(&plain(mac(1), mac(0), 86));
    assert_eq!(totals(&mut bench, 0), [0, 0, 1, 104, 0]);
    assert_eq!(loopback(&mut bench, 0), [0, 0, 1, 104]);
    assert_eq!(totals(&mut bench, 1), [1, 104, 0, 0, 0]);
    assert_eq!(loopback(&mut bench, 1), [1, 104, 0, 0]);
    assert_eq!((bench.pf().read(r::GPRC), bench.pf().read(r::GPTC)), (0, 0), "no frame crossed the wire");
}

#[test]
fn interrupt_counter_iac_counts_messages_and_pin_rises() {
    let mut bench = bench();
    bench.vf(0).write(vf::VTEIMC, 0b010);
    bench.vf(0).write(vf::VTEICS, 0b111);
    bench.poll();
    assert_eq!(bench.pf().read(r::IAC), 2, "a message for each unmasked vector");
    assert_eq!(bench.pf().read(r::IAC), 0, "the read clears IAC");

    let mut bench = CardFixture::bare();
    bench.pf().write(r::IMS, icr::LSC);
    for _ in 0..2 {
        bench.pf().write(r::ICS, icr::LSC);
        bench.poll();
    }
    bench.pf().read(r::ICR);
    bench.poll();
    assert_eq!(bench.pf().read(r::IAC), 1, "the pin rose once, and fell");
}

#[test]
fn vf_counter_vfmprc_counts_multicast_and_no_broadcast() {
    let mut bench = bench();
    bench.wire_sends(&plain(GROUP, mac(9), 60));
    bench.wire_sends(&plain(ALL, mac(9), 60));
    assert_eq!(totals(&mut bench, 1), [2, 156, 0, 0, 1]);
    assert_eq!(bench.vf(1).read(0x0f38), 1, "VFMPRC at the offset of Intel's header");
    assert_eq!(bench.pf().read(r::vf_block(crate::common::index(1)) + vf_stats::VFMPRC), 1);
    assert_eq!((bench.pf().read(r::MPRC), bench.pf().read(r::BPRC)), (1, 1));
}

#[test]
fn vf_counters_exclude_frames_without_a_receive_descriptor() {
    let mut bench = bench();
    bench.vf(0).write(vf::RX_BLOCK + r::rx::RDT, 0);
    bench.wire_sends(&plain(mac(0), mac(9), 60));
    assert_eq!(totals(&mut bench, 0), [0; 5]);
}

#[test]
fn vf_counters_wrap_at_32_bits() {
    let mut bench = bench();
    let frame = plain(mac(1), mac(0), 9000);
    let address = bench.vf(0).place(&frame);
    let descriptor = crate::common::packet(address, frame.len() as u16).emit();
    let length = u64::from(frame.len() as u32 + 4);
    let rounds = (1u64 << 32) / length / 63 + 2;
    // No pool receives: the test needs the sender's counters only.
    bench.pf().write(r::VFRE, 0);
    for _ in 0..rounds {
        bench.vf(0).transmit(&[descriptor; 63]);
        bench.world.bus.log.clear();
    }
    let sent = rounds * 63;
    assert!(sent * length > 1 << 32);
    assert_eq!(totals(&mut bench, 0), [0, 0, sent as u32, (sent * length) as u32, 0]);
}

/// Returns a card whose VF 0 has received a frame and sent another, so that its statistics are not zero.
fn used() -> CardFixture {
    let mut bench = bench();
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    bench.vf(0).send(&plain(mac(1), mac(0), 186));
    assert_eq!(totals(&mut bench, 0), [1, 104, 1, 204, 0]);
    bench
}

/// Tests a reset by the driver: igbvf keeps the last value of a counter, and takes a smaller one as a wrap at 2^32.
#[test]
fn register_reset_by_vf_or_pf_driver_keeps_vf_counters() {
    let ways: [fn(&mut CardFixture); 3] = [
        |bench| bench.vf(0).write(vf::CTRL, ctrl::RST),
        |bench| bench.pf().write(r::vf_block(index(0)), ctrl::RST),
        |bench| bench.pf().write(r::CTRL, ctrl::RST),
    ];
    for reset in ways {
        let mut bench = used();
        reset(&mut bench);
        assert_eq!(totals(&mut bench, 0), [1, 104, 1, 204, 0]);
        assert_eq!(loopback(&mut bench, 0), [0, 0, 1, 204]);
    }
}

#[test]
fn vf_counters_start_at_zero_for_a_new_owner() {
    let ways: [fn(&mut CardFixture); 2] = [
        |bench| bench.nic.reset_function(Vf(0)),
        |bench| {
            bench.config(Pf, SRIOV + sriov::CONTROL, 0);
            bench.enable_vfs(3);
        },
    ];
    for renew in ways {
        let mut bench = used();
        renew(&mut bench);
        assert_eq!((totals(&mut bench, 0), loopback(&mut bench, 0)), ([0; 5], [0; 4]));
        let counters = bench.nic.counters()[0];
        assert_eq!(
            (counters.rx_packets, counters.tx_packets),
            (1, 1),
            "the counters of the card's owner continue"
        );
    }
}

#[test]
fn port_counter_is_cleared_by_a_read() {
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
fn counter_of_two_registers_clears_when_its_high_half_is_read() {
    let mut bench = bench();
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    for (low, high) in [(r::GORCL, r::GORCH), (r::TORL, r::TORH), (r::HGORCL, r::HGORCH)] {
        assert_eq!((bench.pf().read(low), bench.pf().read(low)), (104, 104));
        assert_eq!(bench.pf().read(high), 0);
        assert_eq!(bench.pf().read(low), 0);
    }
}

#[test]
fn host_statistics_count_a_vfs_frames_and_their_bytes() {
    let mut bench = bench();
    bench.vf(0).send(&plain(mac(1), mac(0), 86));
    bench.vf(0).send(&plain(mac(0), mac(0), 86));
    let [sender, receiver, ..] = bench.nic.counters();
    assert_eq!((sender.tx_packets, sender.tx_bytes, sender.tx_unclaimed), (2, 200, 1));
    assert_eq!((receiver.rx_packets, receiver.rx_bytes), (1, 100));
}

/// Reads the six statistics registers that count frames by size, from register `first` on.
fn sizes(bench: &mut CardFixture, first: u32) -> [u32; 6] {
    [0, 4, 8, 12, 16, 20].map(|at| bench.pf().read(first + at))
}

#[test]
fn size_counters_include_the_frame_check_sequence() {
    for (length, class) in [
        (60, 0),
        (61, 1),
        (123, 1),
        (124, 2),
        (251, 2),
        (252, 3),
        (507, 3),
        (508, 4),
        (1019, 4),
        (1020, 5),
        (1514, 5),
        (MAX_FRAME - 4, 5),
    ] {
        let mut expected = [0; 6];
        expected[class] = 1;
        let mut bench = bench();
        bench.wire_sends(&plain(mac(0), mac(9), length - 14));
        assert_eq!(sizes(&mut bench, r::PRC64), expected, "{length} bytes received");
        bench.vf(0).send(&plain(mac(9), mac(0), length - 14));
        assert_eq!(sizes(&mut bench, r::PTC64), expected, "{length} bytes sent");
        assert_eq!((sizes(&mut bench, r::PRC64), sizes(&mut bench, r::PTC64)), ([0; 6], [0; 6]));
    }
}

#[test]
fn filtered_frame_counts_in_the_total_and_not_as_good() {
    let mut bench = bench();
    bench.pf().write(r::VT_CTL, vt_ctl::REPL_EN | vt_ctl::DIS_DEF_PL);
    bench.wire_sends(&plain(mac(9), mac(8), 86));
    bench.wire_sends(&plain(GROUP, mac(8), 86));
    bench.pf().write(r::vmolr(PoolIndex::EVERY[1]), crate::common::POOL);
    bench.wire_sends(&plain(GROUP, mac(8), 86));
    assert_eq!([r::TPR, r::TORL].map(|at| bench.pf().read(at)), [3, 312]);
    assert_eq!([r::GPRC, r::GORCL, r::MPRC, r::RPTHC].map(|at| bench.pf().read(at)), [1, 104, 1, 1]);
    assert_eq!(sizes(&mut bench, r::PRC64), [0, 1, 0, 0, 0, 0]);
}

#[test]
fn port_without_reception_or_link_counts_no_frame() {
    let closed: [fn(&mut CardFixture); 2] =
        [|bench| bench.pf().clear(r::RCTL, rctl::EN), |bench| bench.nic.set_link(false)];
    for close in closed {
        let mut bench = bench();
        close(&mut bench);
        bench.wire_sends(&plain(mac(0), mac(9), 86));
        bench.wire_sends(&[0; 5]);
        assert_eq!([r::TPR, r::TORL, r::GPRC, r::RUC, r::MPC].map(|at| bench.pf().read(at)), [0; 5]);
    }
}

#[test]
fn undersize_and_oversize_frames_count_as_errors_not_as_good() {
    let mut bench = bench();
    bench.wire_sends(&plain(mac(0), mac(9), 0)[..13]);
    bench.wire_sends(&plain(mac(0), mac(9), MAX_FRAME));
    bench.pf().clear(r::RCTL, rctl::LPE);
    bench.wire_sends(&plain(mac(0), mac(9), 1501));
    assert_eq!([r::RUC, r::ROC, r::RLEC].map(|at| bench.pf().read(at)), [1, 2, 3]);
    assert_eq!([r::TPR, r::GPRC].map(|at| bench.pf().read(at)), [3, 0]);
}

#[test]
fn truncated_frame_is_counted_and_dropped_unless_lef_is_set() {
    let mut bench = bench();
    for (length, truncated) in [(86, 0), (87, 1), (1500, 1), (1501, 0), (0, 0)] {
        let mut frame = plain(mac(0), mac(9), 86);
        frame[12..14].copy_from_slice(&u16::to_be_bytes(length));
        for (lef, reached) in [(0, 1 - truncated), (rfctl::LEF, 1)] {
            bench.pf().write(r::RFCTL, lef);
            bench.wire_sends(&frame);
            let counted = [r::LENERRS, r::GPRC].map(|at| bench.pf().read(at));
            assert_eq!(counted, [truncated, reached], "length field {length}");
            assert_eq!(bench.vf(0).received().len(), reached as usize);
        }
    }
    bench.pf().write(r::RFCTL, 0);
    let mut short = plain(mac(0), mac(9), 20);
    short[12..14].copy_from_slice(&[0, 46]);
    bench.wire_sends(&short);
    assert_eq!(bench.pf().read(r::LENERRS), 0, "the padding counts");
    bench.pf().set(r::VT_CTL, vt_ctl::DIS_DEF_PL);
    let mut stray = plain(mac(7), mac(9), 86);
    stray[12..14].copy_from_slice(&[1, 0]);
    bench.wire_sends(&stray);
    assert_eq!(bench.pf().read(r::LENERRS), 0, "a frame that no pool accepts has no length check");
}

#[test]
fn queue_set_to_drop_counts_drops_and_no_missed_packets() {
    let mut bench = bench();
    bench.vf(0).write(vf::RX_BLOCK + r::rx::RDT, 0);
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    assert_eq!(bench.vf(0).read(vf::RX_BLOCK + r::rx::RQDPC), 1);
    assert_eq!([r::RNBC, r::MPC, r::GPRC, r::RPTHC].map(|at| bench.pf().read(at)), [1, 0, 1, 0]);
}

#[test]
fn frame_without_packet_buffer_space_counts_as_missed() {
    let mut bench = bench();
    bench.pf().write(r::RXPBS, 0);
    bench.vf(0).write(vf::RX_BLOCK + r::rx::SRRCTL, 2 | srrctl::ONE_BUFFER << srrctl::DESCTYPE_SHIFT);
    bench.vf(0).write(vf::RX_BLOCK + r::rx::RDT, 0);
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    assert_eq!(bench.vf(0).read(vf::RX_BLOCK + r::rx::RQDPC), 0);
    assert_eq!([r::RNBC, r::MPC, r::TPR, r::GPRC].map(|at| bench.pf().read(at)), [1, 1, 1, 0]);
    bench.pf().write(r::QDE, 1);
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    assert_eq!(bench.vf(0).read(vf::RX_BLOCK + r::rx::RQDPC), 1, "QDE drops the frame");
}

#[test]
fn host_packet_counters_count_a_frame_once_for_all_copies() {
    let mut bench = bench();
    bench.wire_sends(&plain(mac(0), mac(9), 86));
    bench.wire_sends(&plain(ALL, mac(9), 86));
    bench.vf(0).send(&plain(mac(9), mac(0), 186));
    assert_eq!(
        [r::RPTHC, r::HGORCL].map(|at| bench.pf().read(at)),
        [2, 208],
        "a frame counts once for all its copies"
    );
    assert_eq!([r::HGPTC, r::HGOTCL].map(|at| bench.pf().read(at)), [1, 204]);
    assert_eq!([r::HGORCH, r::HGOTCH].map(|at| bench.pf().read(at)), [0; 2]);
    assert_eq!([r::HGORCL, r::HGOTCL].map(|at| bench.pf().read(at)), [0; 2]);
}
