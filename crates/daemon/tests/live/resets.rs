//! Tests of resets that do not come from the guest's driver: a function level reset, the VMM's reset, and the
//! administrator's reset of the whole port.

use crate::support::alone::{alone, descriptors, resident};
use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::machine::{BAR0, BAR3, CONFIG, VmWithPciFunction, Vmm};
use crate::support::qemu::{self, ExpectedPciFunction, QemuClient, VF};
use driver::avf;
use driver::vf::{MAILBOX_VECTOR, VfLinkStatus};
use i82576::MacAddress;
use i82576::register::vf;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;
use vfio_user::client::Client;

/// Offset of the device control register in the PCI Express capability.
const DEVICE_CONTROL: u64 = 8;
/// Bit of the device control register that starts a function level reset.
const INITIATE_FLR: u16 = 1 << 15;

fn function_level_reset(guest: &mut VfGuest<QemuClient>) {
    let control = guest.machine.capability(0x10) + DEVICE_CONTROL;
    let word = guest.machine.config_word(control) | INITIATE_FLR;
    guest.machine.vmm.store(CONFIG, control, &word.to_le_bytes());
}

fn device_reset(guest: &mut VfGuest<QemuClient>) {
    guest.machine.vmm.done(Client::reset).unwrap();
}

/// Resets VF 0 by `reset` while frames move, 20 times. Checks each time that VF 0 and two other VFs work afterwards.
fn under_traffic(reset: fn(&mut VfGuest<QemuClient>)) {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let mut c = VfGuest::under_qemu(&live, 2);
    for round in 0..20 {
        for _ in 0..30 {
            b.send(a.vf.mac(), &[1; 200]);
            a.send(b.vf.mac(), &[1; 200]);
        }
        reset(&mut a);
        b.send_many(a.vf.mac(), 30);
        assert!(!live.show(0).active, "round {round}: the PF does not know of the reset");
        // A kernel enables the function again after a reset, and then its driver restarts.
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
fn function_level_reset_under_traffic_disturbs_no_other_vf() {
    under_traffic(function_level_reset);
}

#[test]
fn vmm_reset_of_a_vf_under_traffic_disturbs_no_other_vf() {
    under_traffic(device_reset);
}

#[test]
fn port_reset_notifies_guests_and_their_drivers_restart() {
    let live = LiveHost::start();
    let mut guests = [0, 1].map(|vf| VfGuest::under_qemu(&live, vf));
    for _ in 0..5 {
        for guest in &mut guests {
            // Earlier notices do not count.
            guest.machine.wait_for(MAILBOX_VECTOR, Duration::ZERO);
        }
        let port = live.reset_port().unwrap();
        assert!(port.link && port.vfs.iter().all(|vf| !vf.active), "a VF is still active: {port:?}");
        for guest in &mut guests {
            assert!(guest.hears_mailbox(), "no mailbox interrupt before the reset");
            assert_eq!(guest.vf.watchdog(&mut guest.machine), VfLinkStatus::ResetNeeded, "RSTD is not set");
            guest.wait_for_link();
        }
        let [a, b] = &mut guests;
        exchange(a, b, 3);
    }
}

#[test]
fn frames_pass_after_port_resets_under_traffic() {
    let live = LiveHost::start();
    let mut guests = [0, 1].map(|vf| VfGuest::under_qemu(&live, vf));
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
fn thousand_function_level_resets_leak_no_memory() {
    alone("resets::thousand_function_level_resets_leak_no_memory", || {
        let live = LiveHost::start();
        let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
        exchange(&mut a, &mut b, 3);
        let mapped = |a: &VfGuest<QemuClient>| a.machine.ram.mapped_by_the_host();
        let windows = || {
            let peer = live.show(0).peer.clone().unwrap();
            (peer.windows, peer.shareable, peer.shareable_bytes)
        };
        // A request to the host uses a descriptor for a moment, so the count is taken before it, and repeated at the
        // end.
        let (fds, bytes) = (descriptors(), resident());
        let (maps, told) = (mapped(&a), windows());
        for round in 0..1000 {
            // Frames are pending in both directions.
            a.send(b.vf.mac(), &[1; 200]);
            b.send(a.vf.mac(), &[1; 200]);
            function_level_reset(&mut a);
            a.machine.enable();
            assert_eq!(mapped(&a), maps, "round {round}");
        }
        assert_eq!(windows(), told);
        eventually("all descriptors are closed", || descriptors() <= fds);
        let grown = resident().saturating_sub(bytes);
        assert!(grown < 4 << 20, "{grown} bytes more than before");
        a.vf.restart(&mut a.machine).unwrap();
        a.wait_for_link();
        a.take();
        b.take();
        exchange(&mut a, &mut b, 3);
    });
}

/// Connects to a function and reads its two BARs and its configuration space. Returns each region with its bytes.
fn read_regions(socket: &Path, shape: ExpectedPciFunction) -> Vec<(u32, Vec<u8>)> {
    let mut qemu = QemuClient::greet(socket);
    let look = |region: u32| {
        let mut bytes = vec![0; shape.size(region)];
        for (offset, part) in (0..).step_by(4096).zip(bytes.chunks_mut(4096)) {
            qemu.load(region, offset, part);
        }
        (region, bytes)
    };
    [BAR0, BAR3, CONFIG].map(look).into()
}

/// Writes ones into every byte of a function's BARs and configuration space. Omits the ranges `left_out` of BAR 0, and
/// the bit that starts a function level reset.
fn overwrite_registers(
    machine: &mut VmWithPciFunction<QemuClient>,
    shape: ExpectedPciFunction,
    left_out: &[Range<u32>],
) {
    let is_left_out = |offset: u64| left_out.iter().any(|range| range.contains(&(offset as u32)));
    for offset in (0..shape.size(BAR0) as u64).step_by(4).filter(|offset| !is_left_out(*offset)) {
        machine.vmm.store(BAR0, offset, &[0xff; 4]);
    }
    machine.vmm.store(BAR3, 0, &vec![0xff; shape.size(BAR3)]);
    let control = machine.capability(0x10) + DEVICE_CONTROL;
    for offset in (0..shape.size(CONFIG) as u64).filter(|offset| *offset != control + 1) {
        machine.vmm.store(CONFIG, offset, &[0xff]);
    }
}

/// Checks that the next client of a used function reads the same bytes as the first client of a new function. Ignores
/// the registers of BAR 0 in `running`, which count time.
fn is_as_new(used: &Path, new: &Path, shape: ExpectedPciFunction, running: &[u32]) {
    for (used, new) in read_regions(used, shape).into_iter().zip(read_regions(new, shape)) {
        let bytes = (0..).zip(used.1.iter().zip(&new.1));
        let runs = |at: usize| used.0 == BAR0 && running.contains(&(at as u32 & !3));
        let differs: Vec<_> = bytes.filter(|(at, (a, b))| a != b && !runs(*at)).collect();
        assert!(differs.is_empty(), "region {}: {differs:x?}", used.0);
    }
}

/// Byte range of the register CTRL in BAR 0, which has the reset bit.
const CTRL: Range<u32> = 0..4;

#[test]
fn client_disconnect_resets_an_82576_vf() {
    let (live, new) = (LiveHost::start(), LiveHost::start());
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    exchange(&mut a, &mut b, 3);
    overwrite_registers(&mut a.machine, VF, std::slice::from_ref(&CTRL));
    drop(a);
    eventually("the client is gone", || live.show(0).peer.is_none());
    is_as_new(&live.socket(0), &new.socket(0), VF, &[vf::FRTIMER]);
}

#[test]
fn client_disconnect_resets_an_avf() {
    let text = "[[port]]\nfamily = \"avf\"\nvfs = 2\n";
    let (live, new) = (LiveHost::with(text), LiveHost::with(text));
    let mut machine = qemu::boot_as(&live.socket(0), qemu::AVF, qemu::share);
    let mut driver = avf::vf::AvfDriver::probe(&mut machine, MacAddress([2, 0, 0, 0, 9, 0])).unwrap();
    driver.start(&mut machine).unwrap();
    eventually("the link is up", || driver.look(&mut machine).is_some());
    overwrite_registers(&mut machine, qemu::AVF, &[]);
    drop(machine);
    eventually("the client is gone", || live.show(0).peer.is_none());
    assert!(!live.show(0).active, "the PF driver does not know of the reset");
    is_as_new(&live.socket(0), &new.socket(0), qemu::AVF, &[]);
}

#[test]
fn client_disconnect_resets_a_pf_that_a_guest_drives() {
    let text = "[[port]]\npf = \"guest\"\nmac = \"02:82:57:60:00:09\"";
    let (live, new) = (LiveHost::with(text), LiveHost::with(text));
    let mut machine = qemu::boot_as(&live.pf_socket(), qemu::PF, qemu::share);
    // CTRL has the reset bit. The registers before the rings and filters write to NVM and PHY, which keep their
    // contents.
    overwrite_registers(&mut machine, qemu::PF, &[0..0xc8, 0x1000..0x1500, 0x12000..0x13000]);
    drop(machine);
    eventually("the client is gone", || live.port().pf.is_some_and(|pf| pf.peer.is_none()));
    assert!(live.port().link, "the port has lost its link");
    // ICR differs: the link of the new card came up.
    let told = [0xc0, i82576::register::FRTIMER];
    is_as_new(&live.pf_socket(), &new.pf_socket(), qemu::PF, &told);
}
