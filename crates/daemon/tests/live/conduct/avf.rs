//! Tests of the thresholds for offences of malicious guests with an AVF.

use super::{QUARANTINE, THROTTLE, WARN, is_quarantined, limit, until};
use crate::support::avf_guest::AvfGuest;
use crate::support::eventually;
use crate::support::live::LiveHost;
use avf::admin::{AdminQueueDescriptor, opcode};
use avf::bits::{aqlen, dyn_ctl};
use avf::register as r;
use daemon::settings::{ConductThresholds, VfSettings};
use driver::Hal;
use i82576::MacAddress;
use vfio_user::client::Client;

const PORT: &str = "[[port]]\nfamily = \"avf\"\nvfs = 2\n";
/// Guest memory address of the mailbox ring that the test writes without the driver.
const RING: u32 = 0x20_0000;

impl AvfGuest {
    fn send(&mut self, to: MacAddress, from: MacAddress) {
        let frame = [&to.0[..], &from.0, &[0x88, 0xb5], &[0; 60]].concat();
        self.driver.transmit(&mut self.machine, 0, &frame);
        self.driver.clean(&mut self.machine);
    }

    pub(super) fn broadcast(&mut self) {
        self.send(MacAddress::BROADCAST, self.driver.mac());
    }

    /// Sends an invalid frame, a header without a payload. A queue stops after many such frames, and its ring fills;
    /// then the guest resets the VF.
    fn send_too_short(&mut self) {
        if !self.driver.transmit(&mut self.machine, 0, &[0; 14]) {
            self.driver.reset(&mut self.machine);
            // The restart fails once the VF is quarantined.
            let _ = self.driver.restart(&mut self.machine);
        }
    }

    /// Triggers an interrupt of the guest's VF immediately.
    fn interrupt(&mut self) {
        let trigger = dyn_ctl::SWINT_TRIG | dyn_ctl::INTENA | 3 << dyn_ctl::ITR_SHIFT;
        self.machine.write(r::dyn_ctl(1), trigger);
    }

    /// Points the VF's mailbox registers at a ring with seven posted descriptors, without the driver. `high` is the
    /// upper half of the ring's address.
    fn ring_mailbox(&mut self, high: u32) {
        let anew = [(r::VF_ATQLEN, 0), (r::VF_ATQH, 0), (r::VF_ATQBAL, RING), (r::VF_ATQBAH, high)];
        for (register, value) in anew.into_iter().chain([(r::VF_ATQLEN, 8 | aqlen::ENABLE), (r::VF_ATQT, 7)])
        {
            self.machine.write(register, value);
        }
    }

    fn send_descriptors(&mut self, operation: u16) {
        let descriptor = AdminQueueDescriptor { opcode: operation, ..AdminQueueDescriptor::default() };
        self.machine.ram.write(RING.into(), [descriptor.emit(); 7].as_flattened());
        self.ring_mailbox(0);
    }
}

/// Starts a host with a guest on VF 0, and then sets the thresholds for one kind of offence. No other guest runs,
/// because the start of its driver sends messages too.
fn world(kind: &str, limits: ConductThresholds) -> (LiveHost, AvfGuest) {
    let live = LiveHost::with(PORT);
    let guest = AvfGuest::boot(&live, 0);
    limit(&live, kind, limits);
    (live, guest)
}

/// Starts a host with thresholds for one kind of offence and a guest on VF 0, and a second guest on VF 1.
fn world_with_neighbour(kind: &str, limits: ConductThresholds) -> (LiveHost, AvfGuest, AvfGuest) {
    let (live, a) = world(kind, limits);
    let b = AvfGuest::boot(&live, 1);
    (live, a, b)
}

#[test]
fn mailbox_flood_quarantines_a_vf() {
    let (live, mut a) = world("mailbox", QUARANTINE);
    is_quarantined(&live, "mailbox", || a.send_descriptors(opcode::QUEUE_SHUTDOWN));
}

#[test]
fn frequent_resets_by_the_guest_quarantine_a_vf() {
    let (live, mut a) = world("mailbox", QUARANTINE);
    is_quarantined(&live, "mailbox", || a.machine.vmm.done(Client::reset).unwrap());
}

#[test]
fn spoofing_quarantines_a_vf() {
    let (live, mut a, b) = world_with_neighbour("spoofing", QUARANTINE);
    is_quarantined(&live, "spoofing", || a.send(b.driver.mac(), MacAddress([2, 6, 6, 6, 6, 6])));
}

#[test]
fn interrupt_storm_quarantines_a_vf() {
    let (live, mut a) = world("interrupts", QUARANTINE);
    is_quarantined(&live, "interrupts", || a.interrupt());
}

#[test]
fn invalid_packets_quarantine_a_vf() {
    let (live, mut a) = world("invalid", QUARANTINE);
    is_quarantined(&live, "invalid", || a.send_too_short());
}

#[test]
fn invalid_mailbox_descriptors_quarantine_a_vf() {
    let (live, mut a) = world("invalid", QUARANTINE);
    is_quarantined(&live, "invalid", || a.send_descriptors(0x0102));
}

#[test]
fn dma_faults_quarantine_a_vf() {
    let (live, mut a) = world("dma-faults", QUARANTINE);
    // A ring that has faulted reports nothing until it is set up again.
    is_quarantined(&live, "dma-faults", || a.ring_mailbox(1 << 8));
}

#[test]
fn offence_above_the_warning_threshold_does_not_stop_a_vf() {
    let (live, mut a, b) = world_with_neighbour("storm", WARN);
    let status = until(
        &live,
        "the offence is counted",
        || a.broadcast(),
        |status| !status.conduct.offences.is_empty(),
    );
    assert_eq!((status.conduct.quarantine, status.conduct.throttled, status.link), (None, false, true));
    let before = live.show(0).tx.packets;
    a.send(b.driver.mac(), a.driver.mac());
    eventually("the VF sends frames", || live.show(0).tx.packets > before);
}

#[test]
fn throttled_vf_is_released_by_the_administrator() {
    let (live, mut a) = world("interrupts", THROTTLE);
    let status = until(&live, "the VF is throttled", || a.interrupt(), |status| status.conduct.throttled);
    assert_eq!((status.conduct.quarantine, status.link), (None, true));
    let status = live.change(0, VfSettings { quarantine: Some(false), ..VfSettings::default() });
    assert!(!status.conduct.throttled);
}

#[test]
fn quarantine_for_a_broadcast_storm_survives_a_host_hand_over() {
    let (mut live, mut a, b) = world_with_neighbour("storm", QUARANTINE);
    until(&live, "the VF is quarantined", || a.broadcast(), |status| status.conduct.quarantine.is_some());
    live.hand_over(PORT);
    let status = live.show(0);
    assert_eq!((status.conduct.quarantine.as_deref(), status.link), (Some("storm"), false));
    assert!(status.conduct.offences["storm"] > 0);
    assert!(a.driver.restart(&mut a.machine).is_err(), "a quarantined VF has started");
    let before = live.show(0).tx.packets;
    let status = live.change(0, VfSettings { quarantine: Some(false), ..VfSettings::default() });
    assert_eq!((status.tx.packets, status.link), (before, true));
    assert_eq!(status.conduct.quarantine, None);
    a.driver.restart(&mut a.machine).unwrap();
    a.send(b.driver.mac(), a.driver.mac());
    eventually("the VF sends frames", || live.show(0).tx.packets > before);
}
