//! Tests of interrupts: valid eventfds, changes of an interrupt vector's eventfd, and interrupt rates that policy sets
//! against the guest driver's settings. `driver::pf` tests the arithmetic of the bounds.

use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::machine::MSIX;
use crate::support::qemu::QemuClient;
use daemon::settings::CoalesceMode;
use daemon::settings::VfSettings;
use driver::Hal;
use driver::vf::RECEIVE_VECTOR;
use host::eventfd::EventFd;
use i82576::bits::eitr;
use i82576::register::vf;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};
use vfio_user::client::Client;
use vfio_user::wire::Errno;

fn copy(eventfd: &EventFd) -> OwnedFd {
    eventfd.as_fd().try_clone_to_owned().unwrap()
}

#[test]
fn message_with_a_non_eventfd_changes_no_interrupt_vector() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let (stranger, _) = rustix::pipe::pipe().unwrap();
    let file = tempfile::tempfile().unwrap();
    let other = EventFd::new().unwrap();
    let qemu = &mut a.machine.vmm;
    assert_eq!(qemu.assign(RECEIVE_VECTOR, vec![stranger]), Err(Errno::EINVAL));
    assert_eq!(qemu.assign(0, vec![copy(&other), copy(&other), file.into()]), Err(Errno::EINVAL));
    assert_eq!(
        qemu.assign(2, vec![copy(&other), copy(&other)]),
        Err(Errno::EINVAL),
        "a vector beyond the last is accepted"
    );
    exchange(&mut a, &mut b, 3);
    assert_eq!(other.drain(), 0, "a refused message has changed a vector");
}

#[test]
fn disabling_another_interrupt_type_keeps_msix_enabled() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    for index in [0, 1, 3, 4] {
        a.machine.vmm.done(|client, out| client.disable_irqs(out, index)).unwrap();
    }
    exchange(&mut a, &mut b, 3);
}

#[test]
fn changing_a_vectors_eventfd_loses_no_interrupt() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let vector = usize::from(RECEIVE_VECTOR);
    for round in 0..200 {
        assert!(b.send(a.vf.mac(), &[round; 60]));
        let next = EventFd::new().unwrap();
        a.machine.vmm.assign(RECEIVE_VECTOR, vec![copy(&next)]).unwrap();
        let before = std::mem::replace(&mut a.machine.eventfds[vector], next);
        // QEMU also passes a signal of the old eventfd on to the new one.
        if before.drain() > 0 {
            a.machine.eventfds[vector].signal();
        }
        assert_eq!(a.receive(), [[round; 60]], "round {round}");
    }
}

#[test]
fn full_eventfd_of_a_vf_blocks_no_frames_of_other_vfs() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let mut c = VfGuest::under_qemu(&live, 2);
    let full = &a.machine.eventfds[usize::from(RECEIVE_VECTOR)];
    full.drain();
    rustix::io::write(full, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    assert!(c.send(a.vf.mac(), &[7; 60]));
    exchange(&mut b, &mut c, 5);
    assert_eq!(a.receive(), [[7; 60]]);
    exchange(&mut a, &mut b, 5);
}

#[test]
fn interrupt_vector_without_an_eventfd_signals_no_client() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    a.machine.vmm.done(|client, out| client.deassign_irqs(out, MSIX, RECEIVE_VECTOR.into(), 1)).unwrap();
    a.machine.eventfds[usize::from(RECEIVE_VECTOR)].drain();
    assert!(b.send(a.vf.mac(), &[1; 60]));
    assert_eq!(a.receive_within(Duration::from_millis(50)), Vec::<Vec<u8>>::new());
    let copies = a.machine.eventfd_copies();
    a.machine.vmm.assign(0, copies).unwrap();
    assert_eq!(a.take(), [[1; 60]], "the frame is missing, not only its interrupt");
}

/// Takes the eventfds of all vectors of a guest's VF away, after the driver has handled its receive interrupts.
fn disable_all(a: &mut VfGuest<QemuClient>) {
    assert_eq!(a.receive_within(Duration::from_millis(50)), Vec::<Vec<u8>>::new());
    a.machine.vmm.done(|client, out| client.disable_irqs(out, MSIX)).unwrap();
}

/// Has a guest's VF miss a receive interrupt: its vectors have no eventfds as a frame arrives from `b`.
fn miss_an_interrupt(a: &mut VfGuest<QemuClient>, b: &mut VfGuest<QemuClient>) {
    disable_all(a);
    assert!(b.send(a.vf.mac(), &[1; 60]));
    assert_eq!(a.receive_within(Duration::from_millis(50)), Vec::<Vec<u8>>::new());
}

/// Gives all vectors of a guest's VF their eventfds again.
fn assign_all(a: &mut VfGuest<QemuClient>) {
    let copies = a.machine.eventfd_copies();
    a.machine.vmm.assign(0, copies).unwrap();
}

#[test]
fn interrupt_without_an_eventfd_is_sent_on_assignment() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    miss_an_interrupt(&mut a, &mut b);
    assign_all(&mut a);
    assert_eq!(a.receive(), [[1; 60]]);
    assign_all(&mut a);
    exchange(&mut a, &mut b, 3);
    // Nothing was missed, so nothing is made good.
    disable_all(&mut a);
    assign_all(&mut a);
    assert_eq!(a.receive_within(Duration::from_millis(50)), Vec::<Vec<u8>>::new());
    exchange(&mut a, &mut b, 3);
}

#[test]
fn interrupt_without_an_eventfd_outlives_a_hand_over() {
    let mut live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    miss_an_interrupt(&mut a, &mut b);
    live.hand_over("");
    assign_all(&mut a);
    assert_eq!(a.receive(), [[1; 60]]);
    exchange(&mut a, &mut b, 3);
}

#[test]
fn reset_discards_interrupts_that_had_no_eventfd() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    miss_an_interrupt(&mut a, &mut b);
    a.machine.vmm.done(Client::reset).unwrap();
    assign_all(&mut a);
    assert!(!a.machine.wait_for(RECEIVE_VECTOR, Duration::from_millis(50)));
}

/// Returns the throttling interval of the guest's receive vector as the guest's driver reads it, microseconds.
fn interval(guest: &mut VfGuest<QemuClient>) -> u32 {
    eitr::interval_us(guest.machine.read(vf::VTEITR + 4 * u32::from(RECEIVE_VECTOR)))
}

/// Writes a throttling interval as the guest's driver does, and checks that policy corrects the interval to `expected`;
/// both in microseconds.
#[track_caller]
fn corrected(guest: &mut VfGuest<QemuClient>, written: u32, expected: u32) {
    guest.machine.write(vf::VTEITR + 4 * u32::from(RECEIVE_VECTOR), written << eitr::INTERVAL_SHIFT);
    eventually(&format!("{expected} us in place of {written}"), || interval(guest) == expected);
}

#[test]
fn interrupt_rate_limits_correct_the_guests_interval() {
    let live = LiveHost::start();
    let mut a = VfGuest::under_qemu(&live, 0);
    let bounds = |least, most| {
        let change =
            VfSettings { min_interrupts: Some(least), max_interrupts: Some(most), ..VfSettings::default() };
        live.change(0, change);
    };
    bounds(2_000, 0);
    corrected(&mut a, 8_191, 500);
    bounds(2_000, 10_000);
    corrected(&mut a, 8_191, 500);
    corrected(&mut a, 1, 100);
    bounds(0, 0);
    corrected(&mut a, 8_191, 8_191);
}

#[test]
fn adaptive_interrupt_rate_is_lowest_for_a_quiet_guest() {
    let live = LiveHost::start();
    let mut a = VfGuest::under_qemu(&live, 0);
    live.change(0, VfSettings { coalesce: Some(CoalesceMode::Adaptive), ..VfSettings::default() });
    corrected(&mut a, 0, 1_000);
    corrected(&mut a, 8_191, 1_000);
    live.change(0, VfSettings { min_interrupts: Some(250), ..VfSettings::default() });
    corrected(&mut a, 0, 4_000);
    live.change(
        0,
        VfSettings { coalesce: Some(CoalesceMode::Guest), min_interrupts: Some(0), ..VfSettings::default() },
    );
    corrected(&mut a, 50, 50);
}

/// Tests an upper bound of the interrupt rate only: a slow host makes fewer interrupts, never more.
#[test]
fn adaptive_interrupt_rate_stays_below_the_packet_rate_bound() {
    const FRAMES: u64 = 3_000;
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    live.change(0, VfSettings { coalesce: Some(CoalesceMode::Adaptive), ..VfSettings::default() });
    corrected(&mut a, 0, 1_000);
    let (begun, before) = (Instant::now(), live.show(0).interventions.interrupts);
    for n in 0..FRAMES {
        while !b.send(a.vf.mac(), &n.to_le_bytes()) {}
        // The guest takes each frame at once, so that each could cause an interrupt.
        a.machine.wait_for(RECEIVE_VECTOR, Duration::from_millis(1));
        a.vf.handle_interrupt(&mut a.machine, RECEIVE_VECTOR);
        a.take();
    }
    let interrupts = live.show(0).interventions.interrupts - before;
    // IF = max(pps * r / bufs, lif): a second's packets count in the next one, so the sum over all packets is the
    // bound.
    let bufs = driver::vf::VfDriverConfig::default().rx_descriptors;
    let most = begun.elapsed().as_secs_f64() * 1_000.0 + FRAMES as f64 * 1.2 / f64::from(bufs) + 2.0;
    assert!(
        (1.0..=most).contains(&(interrupts as f64)),
        "{interrupts} interrupts exceed the bound of {most:.0}"
    );
}
