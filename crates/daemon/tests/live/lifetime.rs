//! Tests of clients that connect and disconnect while their VF stays.

use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::machine::{BAR0, COMMAND, CONFIG, ENABLE, VmWithPciFunction, Vmm};
use crate::support::qemu::{self, QemuClient};
use crate::support::ram::SIZE;
use crate::support::raw::RawVfioUserConnection;
use i82576::MacAddress;
use i82576::register::vf;

#[test]
fn rings_of_a_lost_client_do_not_write_to_the_next_client() {
    let live = LiveHost::start();
    let (a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let mac = a.vf.mac();
    // The client ends like a killed VMM, with running rings and posted buffers.
    drop(a);
    eventually("the client is gone", || live.show(0).peer.is_none());
    // The next guest has firmware in its memory before its VMM resets the VF.
    let mut next = VmWithPciFunction::new(QemuClient::greet(&live.socket(0)), 3);
    qemu::share(&mut next);
    for to in [mac, MacAddress::BROADCAST] {
        assert!(b.send(to, &[0xa5; 1000]));
    }
    eventually("the frames are sent", || live.show(1).tx.packets >= 2);
    let mut memory = vec![0; SIZE as usize];
    next.ram.read(0, &mut memory);
    assert!(memory.iter().all(|byte| *byte == 0), "memory of the new guest was written to");
    assert_eq!(next.config_word(COMMAND) & ENABLE, 0, "memory space and bus mastering are off");
    next.enable();
    assert!(b.send(MacAddress::BROADCAST, &[0xa5; 1000]));
    eventually("the frame is sent", || live.show(1).tx.packets >= 3);
    next.ram.read(0, &mut memory);
    assert!(memory.iter().all(|byte| *byte == 0), "the last client's rings are in use");
}

#[test]
fn second_client_of_a_vf_is_refused_and_the_first_stays() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    for _ in 0..50 {
        RawVfioUserConnection::connect(&live.socket(0)).wait_for_end();
    }
    exchange(&mut a, &mut b, 5);
}

#[test]
fn next_client_is_served_after_a_disconnect() {
    let live = LiveHost::start();
    for round in 0..200 {
        let mut qemu = QemuClient::greet(&live.socket(0));
        // Unread messages make the host notice the end late.
        for _ in 0..round * 20 {
            qemu.store(BAR0, u64::from(vf::VTEIMS), &[0; 4]);
        }
    }
}

#[test]
fn killed_vmm_is_replaced_without_disturbing_other_guests() {
    let live = LiveHost::start();
    let (mut b, mut c) = (VfGuest::under_qemu(&live, 1), VfGuest::under_qemu(&live, 2));
    for _ in 0..10 {
        let mut a = VfGuest::under_qemu(&live, 0);
        a.send_many(b.vf.mac(), 50);
        c.send_many(a.vf.mac(), 50);
        drop(a);
        exchange_after_traffic(&mut b, &mut c);
    }
    let mut a = VfGuest::under_qemu(&live, 0);
    b.take();
    exchange(&mut a, &mut b, 5);
}

/// Sends a frame from `b` to `c` and one back. `b` skips frames that a killed guest sent it before.
fn exchange_after_traffic(b: &mut VfGuest<QemuClient>, c: &mut VfGuest<QemuClient>) {
    assert!(b.send(c.vf.mac(), &[3; 60]));
    assert_eq!(c.receive(), [[3; 60]]);
    assert!(c.send(b.vf.mac(), &[4; 60]));
    let mut last = Vec::new();
    while last != [4; 60] {
        last = b.receive().pop().unwrap_or_default();
    }
}

#[test]
fn sockets_are_removed_with_the_host() {
    let live = LiveHost::start();
    let guest = VfGuest::under_qemu(&live, 0);
    assert!(live.socket(6).exists());
    assert_eq!(live.stop(), Vec::<std::path::PathBuf>::new());
    let mut machine = guest.machine;
    machine.vmm.load(CONFIG, 0, &mut [0; 4]);
    assert!(machine.vmm.gone);
}
