//! Resets from outside the driver: function level reset, the VMM's, and the administrator's of the whole port.

use crate::support::alone::{alone, descriptors, resident};
use crate::support::eventually;
use crate::support::guest::{Guest, exchange};
use crate::support::live::Live;
use crate::support::machine::{BAR0, BAR3, CONFIG, Vmm};
use crate::support::qemu::{Qemu, VF};
use driver::vf::{LinkCheck, MAILBOX_VECTOR};
use i82576::register::vf;
use std::time::Duration;
use vfio_user::client::Client;

/// PCI Express device control, relative to its capability, and the bit that starts a function level reset.
const DEVICE_CONTROL: u64 = 8;
const INITIATE_FLR: u16 = 1 << 15;

fn function_level_reset(guest: &mut Guest<Qemu>) {
    let control = guest.machine.capability(0x10) + DEVICE_CONTROL;
    let word = guest.machine.config_word(control) | INITIATE_FLR;
    guest.machine.vmm.store(CONFIG, control, &word.to_le_bytes());
}

fn device_reset(guest: &mut Guest<Qemu>) {
    guest.machine.vmm.done(Client::reset).unwrap();
}

fn under_traffic(reset: fn(&mut Guest<Qemu>)) {
    let live = Live::start();
    let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
    let mut c = Guest::under_qemu(&live, 2);
    for round in 0..20 {
        for _ in 0..30 {
            b.send(a.vf.mac(), &[1; 200]);
            a.send(b.vf.mac(), &[1; 200]);
        }
        reset(&mut a);
        b.send_many(a.vf.mac(), 30);
        assert!(!live.show(0).active, "round {round}: the PF knows that the VF is gone");
        // What a kernel does after a reset: enable again, then the driver starts over.
        a.machine.enable();
        a.vf.restart(&mut a.machine).unwrap();
        a.wait_for_link();
        b.take();
        a.take();
        exchange(&mut b, &mut c, 2);
        exchange(&mut a, &mut c, 2);
    }
}

#[test]
fn a_function_level_reset_under_traffic() {
    under_traffic(function_level_reset);
}

#[test]
fn a_reset_by_the_vmm_under_traffic() {
    under_traffic(device_reset);
}

#[test]
fn a_reset_of_the_port_is_told_to_its_guests_and_they_start_anew() {
    let live = Live::start();
    let mut guests = [0, 1].map(|vf| Guest::under_qemu(&live, vf));
    for _ in 0..5 {
        for guest in &mut guests {
            // What was said before is old news.
            guest.machine.wait_for(MAILBOX_VECTOR, Duration::ZERO);
        }
        let port = live.reset_port().unwrap();
        assert!(port.link && port.vfs.iter().all(|vf| !vf.active), "no VF is known any more: {port:?}");
        for guest in &mut guests {
            assert!(guest.hears_mailbox(), "the interrupt comes before the reset takes it back");
            assert_eq!(guest.vf.watchdog(&mut guest.machine), LinkCheck::ResetNeeded, "RSTD shows");
            guest.wait_for_link();
        }
        let [a, b] = &mut guests;
        exchange(a, b, 3);
    }
}

#[test]
fn a_reset_of_the_port_under_traffic() {
    let live = Live::start();
    let mut guests = [0, 1].map(|vf| Guest::under_qemu(&live, vf));
    for _ in 0..20 {
        let [a, b] = &mut guests;
        a.send_many(b.vf.mac(), 30);
        b.send_many(a.vf.mac(), 30);
        live.reset_port().unwrap();
        a.send_many(b.vf.mac(), 30);
        for guest in &mut guests {
            guest.wait_for_link();
            guest.take();
        }
        let [a, b] = &mut guests;
        exchange(a, b, 2);
    }
}

#[test]
fn a_thousand_function_level_resets_leave_nothing_behind() {
    alone("resets::a_thousand_function_level_resets_leave_nothing_behind", || {
        let live = Live::start();
        let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
        exchange(&mut a, &mut b, 3);
        let mapped = |a: &Guest<Qemu>| a.machine.ram.mapped_by_the_host();
        let windows = || {
            let peer = live.show(0).peer.clone().unwrap();
            (peer.windows, peer.shareable, peer.shareable_bytes)
        };
        // Whoever asks the host holds a descriptor meanwhile, so they are counted first, and last until they are few.
        let (fds, bytes) = (descriptors(), resident());
        let (maps, told) = (mapped(&a), windows());
        for round in 0..1000 {
            // Frames are under way to the function and from it.
            a.send(b.vf.mac(), &[1; 200]);
            b.send(a.vf.mac(), &[1; 200]);
            function_level_reset(&mut a);
            a.machine.enable();
            assert_eq!(mapped(&a), maps, "round {round}");
        }
        assert_eq!(windows(), told);
        eventually("no descriptor is left", || descriptors() <= fds);
        let grown = resident().saturating_sub(bytes);
        assert!(grown < 4 << 20, "{grown} bytes more than before");
        a.vf.restart(&mut a.machine).unwrap();
        a.wait_for_link();
        a.take();
        b.take();
        exchange(&mut a, &mut b, 3);
    });
}

/// What a VMM reads of a function that it has connected to and reset, region by region.
fn first_look(live: &Live, index: u8) -> Vec<(u32, Vec<u8>)> {
    let mut qemu = Qemu::greet(&live.socket(index));
    qemu.done(Client::reset).unwrap();
    let look = |region: u32| {
        let mut bytes = vec![0; VF.size(region)];
        for (offset, part) in (0..).step_by(4096).zip(bytes.chunks_mut(4096)) {
            qemu.load(region, offset, part);
        }
        (region, bytes)
    };
    let mut looked: Vec<_> = [BAR0, BAR3, CONFIG].map(look).into();
    // The timer runs.
    looked[0].1[vf::FRTIMER as usize..][..4].fill(0);
    looked
}

/// Moves frames, then writes ones into every byte of the function, the resets excepted.
fn use_up(live: &Live, index: u8) {
    let (mut a, mut b) = (Guest::under_qemu(live, index), Guest::under_qemu(live, index + 1));
    exchange(&mut a, &mut b, 3);
    let vmm = &mut a.machine.vmm;
    for offset in (4..VF.size(BAR0) as u64).step_by(4) {
        vmm.store(BAR0, offset, &[0xff; 4]);
    }
    vmm.store(BAR3, 0, &vec![0xff; VF.size(BAR3)]);
    let control = a.machine.capability(0x10) + DEVICE_CONTROL;
    for offset in (0..VF.size(CONFIG) as u64).filter(|offset| *offset != control + 1) {
        a.machine.vmm.store(CONFIG, offset, &[0xff]);
    }
}

#[test]
fn after_the_vmms_reset_nothing_is_left_of_the_last_client() {
    let (live, untouched) = (Live::start(), Live::start());
    use_up(&live, 0);
    eventually("the client is gone", || live.show(0).peer.is_none());
    for (used, fresh) in first_look(&live, 0).into_iter().zip(first_look(&untouched, 0)) {
        let differs: Vec<_> = (0..).zip(used.1.iter().zip(&fresh.1)).filter(|(_, (a, b))| a != b).collect();
        assert!(differs.is_empty(), "region {}: {differs:x?}", used.0);
    }
}
