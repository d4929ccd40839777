//! Tests frames between VFs, PF and wire through the whole card: their receivers, and the memory in which they arrive.
//! The switch's decision has exhaustive tests beside its code (`switch`).

use crate::common::{CardFixture, POOL, PORT, data, mac, packet, plain, tagged};
use i82576::MacAddress;
use i82576::PoolIndex;
use i82576::bits::{dtxswc, icr, rctl, vlvf, vmolr, vmvir, vt_ctl};
use i82576::register::{self as r, vf};
use pcie::Function::{Pf, Vf};

const ALL: MacAddress = MacAddress::BROADCAST;

/// Returns a card whose VFs 0 to 2 and PF (pool 3) have running rings.
fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    for vf in 0..3 {
        bench.vf(vf).start();
    }
    bench.pf().start();
    bench
}

/// Returns the number of frames that VFs 0 to 2, the PF and the wire got.
fn got(bench: &mut CardFixture) -> [usize; 5] {
    let [a, b, c] = [0, 1, 2].map(|vf| bench.vf(vf).received().len());
    [a, b, c, bench.pf().received().len(), bench.wire_got().len()]
}

#[test]
fn sent_frame_for_another_vf_stays_off_the_wire() {
    let mut bench = bench();
    bench.vf(0).send(&plain(mac(1), mac(0), 100));
    assert_eq!(got(&mut bench), [0, 1, 0, 0, 0]);
    assert_eq!(bench.msix(), [(Vf(1), 1), (Vf(0), 0)]);
}

#[test]
fn sent_frame_for_an_unknown_address_goes_to_the_wire() {
    let mut bench = bench();
    bench.vf(0).send(&plain(mac(9), mac(0), 100));
    assert_eq!(got(&mut bench), [0, 0, 0, 0, 1]);
}

#[test]
fn frame_to_the_senders_own_address_is_not_received() {
    let mut bench = bench();
    bench.vf(0).send(&plain(mac(0), mac(0), 100));
    assert_eq!(got(&mut bench), [0, 0, 0, 0, 0]);
    bench.pf().write(r::DTXSWC, dtxswc::LOOPBACK_EN | 1 << dtxswc::LLE_SHIFT);
    bench.vf(0).send(&plain(mac(0), mac(0), 100));
    assert_eq!(got(&mut bench), [1, 0, 0, 0, 0]);
}

#[test]
fn broadcast_goes_to_every_vf_except_its_sender() {
    let mut bench = bench();
    bench.vf(1).send(&plain(ALL, mac(1), 100));
    assert_eq!(got(&mut bench), [1, 0, 1, 1, 1]);
    bench.pf().send(&plain(ALL, PORT, 100));
    assert_eq!(got(&mut bench), [1, 1, 1, 0, 1]);
}

#[test]
fn frames_from_the_wire_go_to_the_vf_of_their_address() {
    let mut bench = bench();
    bench.wire_sends(&plain(mac(2), mac(9), 100));
    assert_eq!(got(&mut bench), [0, 0, 1, 0, 0]);
    bench.wire_sends(&plain(ALL, mac(9), 100));
    assert_eq!(got(&mut bench), [1, 1, 1, 1, 0]);
    bench.wire_sends(&plain(mac(8), mac(9), 100));
    assert_eq!(got(&mut bench), [0, 0, 0, 1, 0], "unknown unicast goes to the default pool");
    bench.pf().write(r::VT_CTL, vt_ctl::REPL_EN | vt_ctl::DIS_DEF_PL);
    bench.wire_sends(&plain(mac(8), mac(9), 100));
    assert_eq!(got(&mut bench), [0, 0, 0, 0, 0]);
}

#[test]
fn multicast_goes_to_pools_with_its_hash_table_bit() {
    let mut bench = bench();
    let group = MacAddress([0x01, 0, 0x5e, 0, 0, 0xfb]);
    bench.wire_sends(&plain(group, mac(9), 100));
    assert_eq!(got(&mut bench), [0, 0, 0, 0, 0]);
    // Bits 47:36 of the address are 0xfb0.
    bench.pf().write(r::mta(0xfb0 >> 5), 1 << (0xfb0 & 31));
    bench.pf().write(r::vmolr(PoolIndex::EVERY[1]), POOL & !vmolr::ROMPE);
    bench.wire_sends(&plain(group, mac(9), 100));
    assert_eq!(got(&mut bench), [1, 0, 1, 1, 0]);
    bench.vf(0).send(&plain(group, mac(0), 100));
    assert_eq!(got(&mut bench), [0, 0, 1, 1, 1]);
}

#[test]
fn frames_of_vfs_all_go_to_the_wire_without_loopback() {
    let mut bench = bench();
    bench.pf().write(r::DTXSWC, 0);
    bench.vf(0).send(&plain(mac(1), mac(0), 100));
    bench.vf(0).send(&plain(ALL, mac(0), 100));
    assert_eq!(got(&mut bench), [0, 0, 0, 0, 2]);
}

#[test]
fn memory_requests_carry_the_routing_id_of_their_function() {
    let mut bench = bench();
    bench.world.bus.log.clear();
    bench.vf(0).send(&plain(mac(1), mac(0), 100));
    let by = |write, function| {
        bench.world.bus.log.iter().filter(|a| a.write == write && a.function == function).count()
    };
    assert_eq!((by(false, Vf(0)), by(true, Vf(0))), (2, 1), "reads ring and frame; writes descriptors");
    assert_eq!((by(false, Vf(1)), by(true, Vf(1))), (1, 2), "reads the ring; writes frame and descriptors");
    assert_eq!(bench.world.bus.log.len(), 6);
    bench.pf().send(&plain(mac(9), PORT, 100));
    assert_eq!(bench.world.bus.log.iter().filter(|a| a.function == Pf).count(), 3);
}

#[test]
fn receive_address_change_applies_to_the_next_frame() {
    let mut bench = bench();
    bench.pf().set_address(22, mac(7), 0b010);
    bench.vf(0).send(&plain(mac(1), mac(0), 100));
    assert_eq!(got(&mut bench), [0, 0, 0, 0, 1]);
    bench.vf(0).send(&plain(mac(7), mac(0), 100));
    assert_eq!(got(&mut bench), [0, 1, 0, 0, 0]);
}

#[test]
fn port_vlan_isolates_pools_and_hides_its_tag_from_guests() {
    let mut bench = bench();
    bench.pf().set(r::RCTL, rctl::VFE);
    bench.pf().write(r::vfta(100 / 32), 1 << (100 % 32));
    bench.pf().write(r::vlvf(0), vlvf::VLANID_EN | 100 | 0b011 << vlvf::POOLSEL_SHIFT);
    for pool in [PoolIndex::EVERY[0], PoolIndex::EVERY[1]] {
        bench.pf().write(r::vmvir(pool), vmvir::DEFAULT | 100);
        bench.pf().write(r::vmolr(pool), POOL & !vmolr::AUPE | vmolr::STRVLAN);
    }
    bench.vf(0).send(&plain(mac(1), mac(0), 100));
    assert_eq!(bench.vf(1).expect_frame().bytes, plain(mac(1), mac(0), 100));
    bench.vf(0).send(&plain(mac(2), mac(0), 100));
    assert_eq!(bench.wire_got(), [tagged(100, &plain(mac(2), mac(0), 100))], "VF 2 is not a member");
    bench.vf(0).send(&tagged(200, &plain(mac(9), mac(0), 100)));
    assert_eq!(bench.wire_got(), [tagged(100, &plain(mac(9), mac(0), 100))], "the sender's tag is replaced");
    bench.vf(2).send(&plain(mac(0), mac(2), 100));
    assert_eq!(got(&mut bench), [0, 0, 0, 0, 1], "VF 0 accepts no untagged frames");
}

#[test]
fn descriptor_inserts_no_vlan_tag_if_vmvir_forbids_insertion() {
    let mut bench = bench();
    bench.pf().write(r::vmvir(PoolIndex::FIRST), vmvir::NEVER);
    let frame = tagged(5, &plain(mac(9), mac(0), 100));
    let address = bench.vf(0).place(&frame);
    let asks = i82576::descriptor::tx::AdvancedDataDescriptor {
        insert_vlan: true,
        ..packet(address, frame.len() as u16)
    };
    bench.vf(0).transmit(&[asks.emit()]);
    assert_eq!(bench.wire_got(), [frame]);
}

#[test]
fn each_pool_strips_the_vlan_tag_of_its_own_copy() {
    let mut bench = bench();
    bench.pf().write(r::RPLOLR, 0);
    bench.pf().write(r::vmolr(PoolIndex::EVERY[1]), POOL | vmolr::STRVLAN);
    bench.pf().write(r::VT_CTL, vt_ctl::REPL_EN);
    let frame = plain(mac(1), mac(9), 100);
    bench.pf().set_address(21, mac(1), 0b101);
    bench.wire_sends(&tagged(7, &frame));
    assert_eq!(bench.vf(0).expect_frame().bytes, tagged(7, &frame));
    assert_eq!(bench.vf(1).expect_frame().bytes, frame);
    assert_eq!(bench.vf(2).expect_frame().bytes, tagged(7, &frame));
}

#[test]
fn frame_with_a_spoofed_source_is_dropped_and_reported() {
    let mut bench = bench();
    bench.pf().write(r::DTXSWC, dtxswc::LOOPBACK_EN | 0b111);
    bench.pf().read(r::ICR);
    bench.vf(0).send(&plain(mac(1), mac(2), 100));
    assert_eq!(got(&mut bench), [0; 5]);
    assert_eq!((bench.pf().read(r::WVBR), bench.pf().read(r::WVBR)), (1, 0));
    assert_eq!(bench.pf().read(r::SSVPC), 1);
    assert_ne!(bench.pf().read(r::ICR) & icr::DOUTSYNC, 0);
    assert!(bench.vf(0).is_done(0), "the descriptor is written back");
    assert_eq!(bench.nic.counters()[0].tx_blocked, 1);
}

#[test]
fn vf_may_not_send_link_control_frames() {
    let mut bench = bench();
    for last in 0..16 {
        bench.vf(0).send(&plain(MacAddress([0x01, 0x80, 0xc2, 0, 0, last]), mac(0), 50));
    }
    assert_eq!(got(&mut bench), [0; 5]);
    assert_eq!(bench.nic.counters()[0].tx_blocked, 16);
}

#[test]
fn link_local_forwarding_passes_every_frame_except_pause() {
    let mut bench = bench();
    let to = |last| plain(MacAddress([0x01, 0x80, 0xc2, 0, 0, last]), mac(0), 50);
    bench.nic.guards_mut().forward_link_local(true);
    (0..16).for_each(|last| bench.vf(0).send(&to(last)));
    assert_eq!(bench.wire_got(), (0..16).filter(|last| *last != 1).map(to).collect::<Vec<_>>());
    assert_eq!((bench.nic.counters()[0].tx_blocked, bench.nic.counters()[0].tx_link_control), (1, 1));
    // A write has the tables decoded again, which must keep the setting.
    let control = bench.pf().read(r::DTXSWC);
    bench.pf().write(r::DTXSWC, control);
    bench.vf(0).send(&to(2));
    assert_eq!(bench.wire_got().len(), 1);
    bench.nic.guards_mut().forward_link_local(false);
    bench.vf(0).send(&to(2));
    assert!(bench.wire_got().is_empty());
}

#[test]
fn vf_without_descriptors_does_not_affect_other_receivers() {
    let mut bench = bench();
    let tail = vf::RX_BLOCK + r::rx::RDT;
    bench.vf(1).write(tail, 0);
    bench.vf(0).send(&plain(ALL, mac(0), 100));
    assert_eq!(got(&mut bench), [0, 0, 1, 1, 1]);
    assert_eq!(bench.vf(1).read(vf::RX_BLOCK + r::rx::RQDPC), 1);
}

#[test]
fn frame_may_use_several_buffers_at_sender_and_receiver() {
    let mut bench = bench();
    let frame = plain(mac(1), mac(0), 7000);
    let address = bench.vf(0).place(&frame);
    let (head, tail) = (data(address, 3333), packet(address + 3333, frame.len() as u16 - 3333));
    bench.vf(0).transmit(&[head.emit(), tail.emit()]);
    let received = bench.vf(1).expect_frame();
    assert_eq!((received.bytes, received.parts.len()), (frame, 4));
}

#[test]
fn port_without_vmdq_receives_only_for_its_own_address() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::GPIE, 1 << 4);
    bench.pf().write(r::RCTL, rctl::EN | rctl::BAM);
    bench.pf().write(r::TCTL, 2);
    bench.pf().start();
    bench.wire_sends(&plain(PORT, mac(9), 100));
    assert_eq!(bench.pf().received().len(), 1);
    bench.wire_sends(&plain(mac(3), mac(9), 100));
    bench.pf().expect_no_frame();
    bench.pf().send(&plain(mac(3), PORT, 100));
    assert_eq!(bench.wire_got().len(), 1);
}
