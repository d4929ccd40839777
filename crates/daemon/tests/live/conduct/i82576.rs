//! Tests of the thresholds for offences of malicious guests with a VF of an 82576.

use super::{QUARANTINE, THROTTLE, WARN, is_quarantined, until};
use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::machine::VmWithPciFunction;
use crate::support::qemu::QemuClient;
use daemon::settings::{ConductThresholds, VfSettings};
use driver::Hal;
use i82576::MacAddress;
use i82576::descriptor::tx::AdvancedDataDescriptor;
use i82576::register::{tx, vf};

/// Starts a host with a guest on VF 0, and then sets the thresholds for one kind of offence.
fn world(kind: &str, limit: ConductThresholds) -> (LiveHost, VfGuest<QemuClient>) {
    let live = LiveHost::start();
    let guest = VfGuest::under_qemu(&live, 0);
    super::limit(&live, kind, limit);
    (live, guest)
}

/// Starts a host with thresholds for one kind of offence and a guest on VF 0, and a second guest on VF 1 that
/// does not offend.
fn world_with_neighbour(
    kind: &str,
    limit: ConductThresholds,
) -> (LiveHost, VfGuest<QemuClient>, VfGuest<QemuClient>) {
    let (live, mut a) = world(kind, limit);
    let mut b = VfGuest::under_qemu(&live, 1);
    exchange(&mut a, &mut b, 3);
    (live, a, b)
}

/// Writes a transmit descriptor into the VF's ring and advances the ring's tail, without the driver.
fn hand_over(machine: &mut VmWithPciFunction<QemuClient>, descriptor: &AdvancedDataDescriptor) {
    let mut read = |at| u64::from(machine.read(vf::TX_BLOCK + at));
    let base = read(tx::TDBAL) | read(tx::TDBAH) << 32;
    let (tail, count) = (read(tx::TDT), read(tx::TDLEN) / 16);
    machine.ram.write(base + tail * 16, &descriptor.emit());
    machine.write(vf::TX_BLOCK + tx::TDT, ((tail + 1) % count) as u32);
}

fn packet(address: u64, length: u16) -> AdvancedDataDescriptor {
    AdvancedDataDescriptor {
        address,
        length,
        end_of_packet: true,
        payload_length: length.into(),
        ..AdvancedDataDescriptor::default()
    }
}

#[test]
fn mailbox_flood_quarantines_a_vf() {
    let (live, mut a) = world("mailbox", QUARANTINE);
    is_quarantined(&live, "mailbox", || {
        for (register, value) in [(vf::V2PMAILBOX, 4), (vf::VMBMEM, 0x77), (vf::V2PMAILBOX, 1)] {
            a.machine.write(register, value);
        }
    });
}

#[test]
fn spoofing_quarantines_a_vf() {
    let (live, mut a, b) = world_with_neighbour("spoofing", QUARANTINE);
    let frame = [&b.vf.mac().0[..], &[2, 6, 6, 6, 6, 6, 0x88, 0xb5], &[0; 60]].concat();
    is_quarantined(&live, "spoofing", || {
        let _ = a.vf.transmit(&mut a.machine, &frame, &Default::default());
        a.vf.flush(&mut a.machine);
        a.vf.clean(&mut a.machine);
    });
}

#[test]
fn interrupt_storm_quarantines_a_vf() {
    let (live, mut a) = world("interrupts", QUARANTINE);
    is_quarantined(&live, "interrupts", || a.machine.write(vf::VTEICS, 7));
}

#[test]
fn invalid_packets_quarantine_a_vf() {
    let (live, mut a, _b) = world_with_neighbour("invalid", QUARANTINE);
    is_quarantined(&live, "invalid", || hand_over(&mut a.machine, &packet(1 << 20, 5)));
}

#[test]
fn dma_faults_quarantine_a_vf() {
    let (live, mut a, _b) = world_with_neighbour("dma-faults", QUARANTINE);
    is_quarantined(&live, "dma-faults", || {
        hand_over(&mut a.machine, &packet(1 << 40, 60));
        // A ring that has faulted reports nothing until it is set up again.
        let enabled = a.machine.read(vf::TX_BLOCK + tx::TXDCTL);
        for value in [0, enabled] {
            a.machine.write(vf::TX_BLOCK + tx::TXDCTL, value);
        }
        for register in [tx::TDH, tx::TDT] {
            a.machine.write(vf::TX_BLOCK + register, 0);
        }
    });
}

#[test]
fn offence_above_the_warning_threshold_does_not_stop_a_vf() {
    let (live, mut a, mut b) = world_with_neighbour("storm", WARN);
    let offend = || a.send_many(MacAddress::BROADCAST, 5);
    let status = until(&live, "the offence is counted", offend, |status| !status.conduct.offences.is_empty());
    assert_eq!((status.conduct.quarantine, status.conduct.throttled, status.link), (None, false, true));
    let before = live.show(0).tx.packets;
    b.take();
    a.send(b.vf.mac(), &[2; 60]);
    eventually("the VF sends frames", || live.show(0).tx.packets > before);
}

#[test]
fn throttled_vf_is_released_by_the_administrator() {
    let (live, mut a) = world("interrupts", THROTTLE);
    let offend = || a.machine.write(vf::VTEICS, 7);
    let status = until(&live, "the VF is throttled", offend, |status| status.conduct.throttled);
    assert_eq!((status.conduct.quarantine, status.link), (None, true));
    let status = live.change(0, VfSettings { quarantine: Some(false), ..VfSettings::default() });
    assert!(!status.conduct.throttled);
}

#[test]
fn broadcast_storm_quarantines_a_vf_until_its_release() {
    let (live, mut a, mut b) = world_with_neighbour("storm", QUARANTINE);
    let offend = || a.send_many(MacAddress::BROADCAST, 5);
    until(&live, "the VF is quarantined", offend, |status| status.conduct.quarantine.is_some());
    assert_eq!(live.show(0).conduct.quarantine.as_deref(), Some("storm"));
    b.receive();
    let before = live.show(0).tx.packets;
    a.send(b.vf.mac(), &[2; 60]);
    live.show(0);
    assert_eq!(live.show(0).tx.packets, before, "a quarantined VF has sent");
    let status = live.change(0, VfSettings { quarantine: Some(false), ..VfSettings::default() });
    assert_eq!((status.conduct.quarantine, status.link), (None, true));
    eventually("the VF sends its pending frame", || live.show(0).tx.packets > before);
}
