//! Tests with a VMM like QEMU: its requests at the start, its guest's driver, and frames.

use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::machine::{BAR0, BAR3, CONFIG, Vmm};
use crate::support::{eventually, qemu};
use daemon::control::status::LinkState;
use driver::Hal;
use driver::vf::VfLinkStatus;
use i82576::register::vf;

#[test]
fn guest_boots_and_its_driver_completes_the_handshake() {
    let live = LiveHost::start();
    let guest = VfGuest::under_qemu(&live, 3);
    let status = live.show(3);
    assert_eq!(guest.vf.mac().to_string(), status.mac);
    assert!(status.active && status.link, "{status:?}");
    let peer = status.peer.as_ref().unwrap();
    assert_eq!((peer.pid, peer.windows, peer.shareable), (std::process::id().cast_signed(), 3, 2));
    assert_eq!(status.hint, None);
    assert!(status.interventions.reads > 0 && status.interventions.posted_writes > 0);
}

#[test]
fn mailbox_handshake_works_by_register_accesses() {
    // Datasheet 7.1.5.1.2: take the buffer, write a message, set the request bit; the PF acknowledges and answers.
    let live = LiveHost::start();
    let mut machine = qemu::boot(&live.socket(0));
    machine.write(vf::CTRL, 1 << 26);
    eventually("the VF owns the buffer", || {
        machine.write(vf::V2PMAILBOX, 4);
        machine.read(vf::V2PMAILBOX) & 4 != 0
    });
    machine.write(vf::VMBMEM, 1);
    machine.write(vf::V2PMAILBOX, 1);
    eventually("the PF answers", || machine.read(vf::V2PMAILBOX) & 0x10 != 0);
    assert_eq!(machine.read(vf::VMBMEM), 0x8000_0001, "VF_RESET, acknowledged, nothing else");
    let words = [machine.read(vf::VMBMEM + 4), machine.read(vf::VMBMEM + 8)];
    let address = i82576::MacAddress::from_words(words[0], words[1]);
    assert_eq!(address.to_string(), live.show(0).mac);
}

#[test]
fn rom_bar_is_absent_and_bars_have_their_sizes() {
    let live = LiveHost::start();
    let mut machine = qemu::boot(&live.socket(0));
    for (register, written, mask) in
        [(0x30, 0xffff_f800, 0), (0x10, u32::MAX, 0xffff_c000), (0x1c, u32::MAX, 0xffff_c000)]
    {
        machine.vmm.store(CONFIG, register, &u32::to_le_bytes(written));
        let mut read = [0; 4];
        machine.vmm.load(CONFIG, register, &mut read);
        assert_eq!(u32::from_le_bytes(read) & !0xf, mask, "register {register:#x}");
    }
}

#[test]
fn register_writes_in_one_message_keep_their_order() {
    let live = LiveHost::start();
    let mut machine = qemu::boot(&live.socket(0));
    let before = live.show(0).interventions.posted_writes;
    let words = [0x100, 0x200, 0x300].map(u32::to_le_bytes);
    let at = u64::from(vf::VTEITR);
    machine.vmm.store_many(&[(BAR0, at, &words[0]), (BAR0, at + 4, &words[1]), (BAR0, at, &words[2])]);
    assert_eq!((machine.read(vf::VTEITR), machine.read(vf::VTEITR + 4)), (0x300, 0x200));
    assert_eq!(live.show(0).interventions.posted_writes, before + 3);
}

#[test]
fn two_guests_exchange_frames_by_interrupt() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    exchange(&mut a, &mut b, 50);
    for vf in [0, 1] {
        let status = live.show(vf);
        assert_eq!((status.tx.packets, status.rx.packets), (50, 50));
        assert!(status.interventions.interrupts >= 50, "{:?}", status.interventions);
        assert_eq!(status.drops.dma_faults, 0);
    }
}

#[test]
fn msix_table_writes_of_a_vf_are_stored_without_effect() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let mut entry = [0; 16];
    a.machine.vmm.load(BAR3, 16, &mut entry);
    assert_eq!(entry[12], 1, "not masked after a reset");
    a.machine.vmm.store(BAR3, 16, &[0xf0; 8]);
    a.machine.vmm.load(BAR3, 16, &mut entry);
    assert_eq!(entry[..8], [0xf0; 8]);
    exchange(&mut a, &mut b, 2);
}

#[test]
fn guest_link_follows_the_link_state_set_by_command() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
    let status = live.set(0, LinkState::Disable);
    assert_eq!((status.settings.state, status.link), (Some(LinkState::Disable), false));
    eventually("the guest sees the link down", || {
        a.hears_mailbox() && a.vf.check_link(&mut a.machine) == VfLinkStatus::Down
    });
    assert!(live.show(1).link, "another VF has lost its link");
    assert!(live.set(0, LinkState::Auto).link);
    assert!(a.hears_mailbox());
    a.wait_for_link();
    exchange(&mut a, &mut b, 3);
}
