//! Eventfds: what is taken as one, and that interrupts go where they were last told to.

use crate::support::guest::{Guest, exchange};
use crate::support::live::Live;
use driver::vf::RECEIVE_VECTOR;
use host::eventfd::EventFd;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use vfio_user::wire::Errno;

fn copy(eventfd: &EventFd) -> OwnedFd {
    eventfd.as_fd().try_clone_to_owned().unwrap()
}

#[test]
fn only_eventfds_are_taken_and_all_or_none_of_a_message() {
    let live = Live::start();
    let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
    let (stranger, _) = rustix::pipe::pipe().unwrap();
    let file = tempfile::tempfile().unwrap();
    let other = EventFd::new().unwrap();
    let qemu = &mut a.machine.vmm;
    assert_eq!(qemu.assign(RECEIVE_VECTOR, vec![stranger]), Err(Errno::EINVAL));
    assert_eq!(qemu.assign(0, vec![copy(&other), copy(&other), file.into()]), Err(Errno::EINVAL));
    assert_eq!(
        qemu.assign(2, vec![copy(&other), copy(&other)]),
        Err(Errno::EINVAL),
        "beyond the last vector"
    );
    exchange(&mut a, &mut b, 3);
    assert_eq!(other.drain(), 0, "nothing was re-pointed");
}

#[test]
fn switching_off_another_interrupt_type_leaves_msix_alone() {
    let live = Live::start();
    let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
    for index in [0, 1, 3, 4] {
        a.machine.vmm.done(|client, out| client.disable_irqs(out, index)).unwrap();
    }
    exchange(&mut a, &mut b, 3);
}

#[test]
fn a_vector_is_repointed_while_it_fires_and_no_interrupt_is_lost() {
    let live = Live::start();
    let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
    let vector = usize::from(RECEIVE_VECTOR);
    for round in 0..200 {
        assert!(b.send(a.vf.mac(), &[round; 60]));
        let next = EventFd::new().unwrap();
        a.machine.vmm.assign(RECEIVE_VECTOR, vec![copy(&next)]).unwrap();
        let before = std::mem::replace(&mut a.machine.eventfds[vector], next);
        // As QEMU does when it re-points: what the old one holds, it hands on itself.
        if before.drain() > 0 {
            a.machine.eventfds[vector].signal();
        }
        assert_eq!(a.receive(), [[round; 60]], "round {round}");
    }
}

#[test]
fn a_full_eventfd_holds_nobody_up() {
    let live = Live::start();
    let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
    let mut c = Guest::under_qemu(&live, 2);
    let full = &a.machine.eventfds[usize::from(RECEIVE_VECTOR)];
    full.drain();
    rustix::io::write(full, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    assert!(c.send(a.vf.mac(), &[7; 60]));
    exchange(&mut b, &mut c, 5);
    assert_eq!(a.receive(), [[7; 60]]);
    exchange(&mut a, &mut b, 5);
}

#[test]
fn a_vector_without_an_eventfd_is_silent() {
    let live = Live::start();
    let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
    a.machine.vmm.done(|client, out| client.deassign_irqs(out, 2, RECEIVE_VECTOR.into(), 1)).unwrap();
    a.machine.eventfds[usize::from(RECEIVE_VECTOR)].drain();
    assert!(b.send(a.vf.mac(), &[1; 60]));
    assert_eq!(a.receive_within(Duration::from_millis(50)), Vec::<Vec<u8>>::new());
    let copies = a.machine.eventfd_copies();
    a.machine.vmm.assign(0, copies).unwrap();
    assert_eq!(a.take(), [[1; 60]], "only the news was missing");
}
