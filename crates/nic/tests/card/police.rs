//! Tests violations and overload in registers: WVBR, LVMMC and MDFB, storm control with its interrupt, control frames,
//! and frames without a descriptor.

use crate::common::{CardFixture, PORT, index, mac, packet, plain};
use i82576::MacAddress;
use i82576::bits::{ctrl, dtxctl, dtxswc, icr, lvmmc, rctl, sccrl, scsts, srrctl};
use i82576::descriptor::tx::AdvancedDataDescriptor;
use i82576::register::{self as r, rx, rx_block, vf};
use pcie::Function::Pf;

const ALL: MacAddress = MacAddress::BROADCAST;

/// Returns a card whose VFs 0 to 2 and PF (pool 3) have running rings; the causes of ICR use vector 0.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    for vf in 0..3 {
        bench.vf(vf).start();
    }
    bench.pf().start();
    bench.pf().write(r::IVAR_MISC, 0x8000);
    bench.pf().write(r::EIMS, 1);
    bench.pf().write(r::EIAC, 1);
    bench.pf().read(r::ICR);
    bench
}

/// Reads a register of the PF.
fn pf(bench: &mut CardFixture, offset: u32) -> u32 {
    bench.pf().read(offset)
}

fn spoof(bench: &mut CardFixture, vf: u8) {
    bench.vf(vf).send(&plain(mac(1), mac(9), 100));
}

/// Sends a packet with a reserved descriptor type from a VF.
fn nonsense(bench: &mut CardFixture, vf: u8) {
    let mut raw = packet(0x2_0000, 60).emit();
    raw[10] |= 0xf0;
    bench.vf(vf).transmit(&[raw]);
}

#[test]
fn wvbr_register_has_a_bit_for_each_spoofing_queue() {
    let mut bench = bench();
    bench.pf().write(r::DTXSWC, dtxswc::LOOPBACK_EN | 0b111);
    spoof(&mut bench, 0);
    spoof(&mut bench, 2);
    assert_eq!(pf(&mut bench, r::WVBR), 0b101);
    assert_eq!(pf(&mut bench, r::WVBR), 0, "the read clears WVBR");
    assert_eq!(pf(&mut bench, r::LVMMC), lvmmc::SPOOFED | 2 << lvmmc::QUEUE_SHIFT);
    assert_eq!(pf(&mut bench, r::LVMMC), 0);
    assert_eq!(pf(&mut bench, r::SSVPC), 2);
    let counters = bench.nic.counters()[2];
    assert_eq!((counters.tx_blocked, counters.tx_spoofed, counters.tx_link_control), (1, 1, 0));
}

#[test]
fn lvmmc_keeps_violation_causes_and_last_queue_until_read() {
    let mut bench = bench();
    bench.pf().set(r::DTXCTL, dtxctl::MDP_EN);
    bench.pf().write(r::DTXSWC, dtxswc::LOOPBACK_EN | 0b111);
    nonsense(&mut bench, 2);
    spoof(&mut bench, 0);
    spoof(&mut bench, 1);
    let causes = lvmmc::SPOOFED | lvmmc::DESCRIPTOR;
    assert_eq!(pf(&mut bench, r::LVMMC), causes | 1 << lvmmc::QUEUE_SHIFT);
}

#[test]
fn spoofed_frame_interrupts_the_pf_only_with_spoof_int() {
    let mut bench = bench();
    bench.pf().write(r::DTXSWC, dtxswc::LOOPBACK_EN | 0b111);
    bench.pf().write(r::IMS, icr::DOUTSYNC);
    bench.msix();
    spoof(&mut bench, 0);
    assert!(bench.msix().contains(&(Pf, 0)));
    assert_ne!(pf(&mut bench, r::ICR) & icr::DOUTSYNC, 0);
    bench.pf().clear(r::DTXCTL, dtxctl::SPOOF_INT);
    spoof(&mut bench, 0);
    assert_eq!(bench.msix().iter().filter(|message| **message == (Pf, 0)).count(), 0);
    assert_eq!(pf(&mut bench, r::WVBR), 1, "WVBR reports it without an interrupt");
}

#[test]
fn malformed_packet_does_not_block_its_queue_without_mdp_en() {
    let mut bench = bench();
    nonsense(&mut bench, 0);
    assert_eq!([r::MDFB, r::WVBR, r::LVMMC].map(|at| pf(&mut bench, at)), [0; 3]);
    bench.vf(0).send(&plain(mac(9), mac(0), 100));
    assert_eq!(bench.wire_got().len(), 1);
    assert_eq!(bench.nic.counters()[0].tx_invalid, 1);
}

#[test]
fn malicious_driver_protection_blocks_a_queue_until_freed() {
    let mut bench = bench();
    bench.pf().set(r::DTXCTL, dtxctl::MDP_EN);
    bench.pf().write(r::IMS, icr::DOUTSYNC);
    nonsense(&mut bench, 1);
    bench.vf(1).send(&plain(mac(9), mac(1), 100));
    assert!(bench.wire_got().is_empty(), "blocked");
    bench.vf(0).send(&plain(mac(9), mac(0), 100));
    assert_eq!(bench.wire_got().len(), 1, "the neighbour is not blocked");
    assert_eq!(pf(&mut bench, r::MDFB), 2);
    assert_eq!(pf(&mut bench, r::WVBR), 2 << 16);
    assert_eq!(pf(&mut bench, r::LVMMC), lvmmc::DESCRIPTOR | 1 << lvmmc::QUEUE_SHIFT);
    assert_ne!(pf(&mut bench, r::ICR) & icr::DOUTSYNC, 0);
    bench.pf().write(r::MDFB, 2);
    bench.poll();
    assert_eq!((bench.wire_got().len(), pf(&mut bench, r::MDFB)), (1, 0), "the pending frame leaves");
}

#[test]
fn blocked_queue_sends_no_later_descriptor() {
    let mut bench = bench();
    bench.pf().set(r::DTXCTL, dtxctl::MDP_EN);
    let frame = plain(mac(9), mac(0), 100);
    let good = packet(bench.vf(0).place(&frame), frame.len() as u16).emit();
    let short = AdvancedDataDescriptor { length: 10, payload_length: 10, ..packet(0x2_0000, 10) }.emit();
    bench.vf(0).transmit(&[good, short, good, good]);
    assert_eq!(bench.wire_got().len(), 1);
    assert_eq!(pf(&mut bench, r::LVMMC) & 0x1f, lvmmc::SIZE);
    bench.pf().write(r::MDFB, 1);
    bench.poll();
    assert_eq!(bench.wire_got().len(), 2, "freeing the queue needs no doorbell");
}

#[test]
fn dma_fault_sets_no_malicious_driver_block_in_mdfb() {
    let mut bench = bench();
    bench.pf().set(r::DTXCTL, dtxctl::MDP_EN);
    bench.vf(0).transmit(&[packet(1 << 40, 60).emit()]);
    bench.poll();
    assert_eq!(bench.nic.counters()[0].dma_faults, 1);
    assert_eq!(
        (bench.nic.counters()[0].tx_invalid, pf(&mut bench, r::MDFB)),
        (0, 0),
        "a fault stops the ring without MDFB"
    );
}

#[test]
fn function_reset_frees_blocked_queues() {
    let mut bench = bench();
    bench.pf().set(r::DTXCTL, dtxctl::MDP_EN);
    for vf in [0, 1] {
        nonsense(&mut bench, vf);
    }
    bench.vf(1).write(vf::CTRL, i82576::bits::ctrl::RST);
    assert_eq!(pf(&mut bench, r::MDFB), 1);
    bench.pf().write(r::CTRL, i82576::bits::ctrl::RST);
    assert_eq!(pf(&mut bench, r::MDFB), 0);
}

/// Configures storm control: windows of a millisecond, ten blocks of 64 bytes, drops in the storm's window and in the next.
fn storm_control(bench: &mut CardFixture) {
    let control = sccrl::BDICW | sccrl::BDIPW | sccrl::MDICW | sccrl::MDIPW;
    for (at, value) in [
        (r::SCBI, 62_500),
        (r::SCCRL, control | 1 << sccrl::INTERVAL_SHIFT),
        (r::BSCTRH, 10),
        (r::MSCTRH, 10),
        (r::IMS, icr::SCE),
    ] {
        bench.pf().write(at, value);
    }
    bench.msix();
}

/// Returns the number of frames that VF 1 got since the last call.
fn received(bench: &mut CardFixture) -> usize {
    bench.vf(1).received().len()
}

#[test]
fn broadcast_storm_is_dropped_and_raises_an_interrupt() {
    let mut bench = bench();
    storm_control(&mut bench);
    for _ in 0..25 {
        bench.wire_sends(&plain(ALL, mac(9), 46));
    }
    assert_eq!(received(&mut bench), 10);
    assert_eq!(bench.nic.counters()[1].rx_storm, 15);
    assert_eq!(pf(&mut bench, r::SCSTS), scsts::BSCA);
    assert!(bench.msix().contains(&(Pf, 0)), "a storm began");
    assert_ne!(pf(&mut bench, r::ICR) & icr::SCE, 0);
    bench.wire_sends(&plain(mac(1), mac(9), 46));
    assert_eq!(received(&mut bench), 1, "storm control does not drop unicast");
}

#[test]
fn broadcast_storm_ends_on_time_without_frames() {
    let mut bench = bench();
    bench.wait_us(300);
    storm_control(&mut bench);
    for _ in 0..25 {
        bench.wire_sends(&plain(ALL, mac(9), 46));
    }
    let ends = bench.poll().deadline.unwrap();
    assert_eq!(ends.as_micros(), 1300, "the first window begins with its configuration");
    bench.now = ends;
    bench.pf().read(r::ICR);
    bench.wire_sends(&plain(ALL, mac(9), 46));
    assert_eq!((pf(&mut bench, r::SCSTS), pf(&mut bench, r::ICR) & icr::SCE), (scsts::BSCAP, 0));
    bench.now = bench.poll().deadline.unwrap();
    bench.msix();
    bench.poll();
    assert!(bench.msix().contains(&(Pf, 0)), "the storm is over");
    assert_ne!(pf(&mut bench, r::ICR) & icr::SCE, 0);
    assert_eq!((pf(&mut bench, r::SCSTS), bench.poll().deadline), (0, None));
    received(&mut bench);
    bench.wire_sends(&plain(ALL, mac(9), 46));
    assert_eq!(received(&mut bench), 1);
}

#[test]
fn storm_control_drops_a_vfs_broadcasts_except_to_the_wire() {
    let mut bench = bench();
    storm_control(&mut bench);
    for _ in 0..25 {
        bench.vf(0).send(&plain(ALL, mac(0), 46));
    }
    assert_eq!((received(&mut bench), bench.wire_got().len()), (10, 25));
    assert_eq!(bench.nic.counters()[0].tx_broadcast, 25, "the counters name the sender");
}

#[test]
fn link_control_frames_have_their_own_counter() {
    let mut bench = bench();
    bench.vf(0).send(&plain(MacAddress([0x01, 0x80, 0xc2, 0, 0, 1]), mac(0), 50));
    let counters = bench.nic.counters()[0];
    assert_eq!((counters.tx_blocked, counters.tx_link_control, counters.tx_spoofed), (1, 1, 0));
    assert_eq!(pf(&mut bench, r::SSVPC), 0, "link control is not counted as spoofing");
}

/// Returns a MAC control frame with the given operation and pause time (quanta).
fn control(dst: MacAddress, operation: u8, quanta: u8) -> Vec<u8> {
    let mut frame = plain(dst, mac(9), 46);
    frame[12..18].copy_from_slice(&[0x88, 0x08, 0, operation, 0, quanta]);
    frame
}

const FLOW_CONTROL: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 1]);

/// Returns a card whose CTRL.RFCE enables flow control, and whose VF 1 gets frames to the flow control address.
fn flow_control() -> CardFixture {
    let mut bench = bench();
    bench.pf().set_address(20, FLOW_CONTROL, 0b010);
    bench.pf().set(r::CTRL, ctrl::RFCE);
    bench
}

/// Sends an XON, two XOFFs and another MAC control frame to the group address, and an XON to the port. Returns the
/// number of frames that VF 1 received, and XONRXC, XOFFRXC and FCRUC.
fn controlled(bench: &mut CardFixture) -> (usize, [u32; 3]) {
    for (operation, quanta) in [(1, 0), (1, 9), (1, 9), (7, 0)] {
        bench.wire_sends(&control(FLOW_CONTROL, operation, quanta));
    }
    bench.wire_sends(&control(PORT, 1, 0));
    (received(bench), [r::XONRXC, r::XOFFRXC, r::FCRUC].map(|at| pf(bench, at)))
}

#[test]
fn rctl_dpf_drops_pause_and_pmcf_passes_other_mac_control() {
    for (bits, reached) in [(rctl::DPF, 0), (rctl::DPF | rctl::PMCF, 1), (0, 3), (rctl::PMCF, 4)] {
        let mut bench = flow_control();
        bench.pf().set(r::RCTL, bits);
        assert_eq!(controlled(&mut bench), (reached, [2, 2, 1]), "RCTL {bits:#x}");
    }
}

#[test]
fn consumed_mac_control_frame_is_not_counted_as_good() {
    let mut bench = flow_control();
    bench.pf().set(r::RCTL, rctl::DPF);
    controlled(&mut bench);
    assert_eq!(pf(&mut bench, r::GPRC), 0);
    bench.wire_sends(&control(mac(1), 1, 0));
    assert_eq!(received(&mut bench), 1);
}

#[test]
fn mac_control_frames_are_delivered_without_rfce() {
    let mut bench = flow_control();
    bench.pf().clear(r::CTRL, ctrl::RFCE);
    bench.pf().set(r::RCTL, rctl::DPF);
    assert_eq!(controlled(&mut bench), (4, [0; 3]));
}

/// Sends a frame to VF 1 while its ring has no free descriptor. Returns the counters RQDPC of the queue, MPC and RNBC.
fn missed(bench: &mut CardFixture) -> [u32; 3] {
    let rqdpc = rx_block(index(1).queue(0)) + rx::RQDPC;
    bench.vf(1).write(vf::RX_BLOCK + rx::RDT, 0);
    bench.wire_sends(&plain(mac(1), mac(9), 100));
    [rqdpc, r::MPC, r::RNBC].map(|at| pf(bench, at))
}

#[test]
fn queue_set_to_drop_frames_counts_its_drops_in_rqdpc() {
    let mut bench = bench();
    assert_eq!(missed(&mut bench), [1, 0, 1], "SRRCTL.DROP_EN");
    bench.vf(1).clear(vf::RX_BLOCK + rx::SRRCTL, srrctl::DROP_EN);
    bench.pf().write(r::QDE, 1 << 1);
    assert_eq!(missed(&mut bench), [1, 0, 1], "QDE");
}

#[test]
fn frame_counts_as_missed_if_the_packet_buffer_has_size_zero() {
    let mut bench = bench();
    bench.pf().write(r::RXPBS, 0);
    bench.vf(1).clear(vf::RX_BLOCK + rx::SRRCTL, srrctl::DROP_EN);
    bench.pf().write(r::QDE, !(1 << 1));
    assert_eq!(missed(&mut bench), [0, 1, 1]);
}

#[test]
fn pf_may_send_link_control_frames() {
    let mut bench = bench();
    let lacp = plain(MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x02]), PORT, 100);
    bench.pf().send(&lacp);
    assert_eq!(bench.wire_got(), [lacp]);
    assert_eq!(bench.nic.counters()[3].tx_link_control, 0);
}
