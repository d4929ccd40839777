//! Tests of VFs with mappable doorbells: the register pages that a VMM is offered, and messages to pages that a client
//! has mapped. Embedded guests test traffic through the pages.

use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::machine::{BAR0, Vmm};
use crate::support::qemu::{self, QemuClient};
use driver::Hal;
use host::memory::{MappedFile, MemoryProtection};
use i82576::register::{tx, vf};
use i82576::window::MAPPED;
use std::os::fd::OwnedFd;
use vfio_user::client::{RegionLayout, ReplyContents};
use vfio_user::wire::region_flags::{CAPS, MMAP};

const MAPPED_PORT: &str = "[[port]]\nwait = \"mapped\"\n";
const MAPPED_AVF: &str = "[[port]]\nfamily = \"avf\"\nwait = \"mapped\"\n";

fn bar0(qemu: &mut QemuClient, room: u32) -> (RegionLayout, Vec<OwnedFd>) {
    let ask =
        |client: &mut vfio_user::client::Client<OwnedFd>, out: &mut _| client.region_info(out, BAR0, room);
    let answered = qemu.ask_for_file(ask, |answer, fds| match answer {
        Ok(ReplyContents::Region(layout)) => (layout, fds),
        other => panic!("unexpected answer {other:?}"),
    });
    answered.unwrap()
}

/// Maps the pages of BAR 0 that the host offers into the test's memory, and returns the mapping.
fn pages(qemu: &mut QemuClient) -> MappedFile {
    let (layout, fds) = bar0(qemu, 64);
    let area = layout.sparse[0];
    MappedFile::map(&fds[0], layout.offset + area.offset, area.size, MemoryProtection::ReadWrite).unwrap()
}

#[test]
fn region_reply_has_mappable_pages_and_their_descriptor() {
    let live = LiveHost::with(MAPPED_PORT);
    let mut qemu = QemuClient::greet(&live.socket(0));
    let (short, none) = bar0(&mut qemu, 32);
    assert_eq!((short.argsz, short.flags & (MMAP | CAPS), none.len()), (64, MMAP, 0));
    let (whole, one) = bar0(&mut qemu, short.argsz);
    let [area] = whole.sparse[..] else { panic!("{whole:?}") };
    assert_eq!((area.offset, area.size), (MAPPED.start.into(), (MAPPED.end - MAPPED.start).into()));
    assert_eq!((whole.size, one.len()), (0x4000, 1));
}

#[test]
fn mappable_avf_pages_share_the_registers_of_the_vf() {
    let live = LiveHost::with(MAPPED_AVF);
    let mut qemu = QemuClient::greet(&live.socket(0));
    let (layout, fds) = bar0(&mut qemu, 128);
    let areas: Vec<_> = layout.sparse.iter().map(|area| (area.offset, area.size)).collect();
    assert_eq!((&areas[..], layout.size, fds.len()), (&[(0, 0x1000), (0x2000, 0x2000)][..], 0x1_0000, 1));
    let page =
        |offset: u64| MappedFile::map(&fds[0], layout.offset + offset, 0x1000, MemoryProtection::ReadWrite);
    let (tails, vectors) = (page(0).unwrap(), page(0x3000).unwrap());
    let seen = avf::bits::dyn_ctl::SEEN;
    assert_eq!((tails.load_dword(0), vectors.load_dword(0x800)), (Ok(0), Ok(seen)));
    // A guest's store is in the register before the host answers a later message, and a written register is in the
    // page.
    tails.store_dword(4, 5).unwrap();
    let (tail, tail2) = (avf::register::qtx_tail(1), avf::register::qtx_tail(2));
    let mut read = [0; 4];
    qemu.load(BAR0, tail.into(), &mut read);
    assert_eq!(u32::from_le_bytes(read), 5);
    qemu.store(BAR0, tail2.into(), &7_u32.to_le_bytes());
    eventually("the message stores into the page", || tails.load_dword(8) == Ok(7));
}

#[test]
fn port_without_mapped_doorbells_offers_no_pages_to_map() {
    let live = LiveHost::start();
    let mut qemu = QemuClient::greet(&live.socket(0));
    let (layout, fds) = bar0(&mut qemu, 64);
    assert_eq!((layout.flags & (MMAP | CAPS), fds.len()), (0, 0));
}

#[test]
fn client_without_mapped_pages_is_served_by_messages() {
    let live = LiveHost::with(MAPPED_PORT);
    let mut one = VfGuest::bring_up(qemu::boot_as(&live.socket(0), qemu::MAPPABLE_VF, qemu::share));
    let mut other = VfGuest::bring_up(qemu::boot_as(&live.socket(1), qemu::IGNORANT_VF, qemu::share));
    exchange(&mut one, &mut other, 100);
}

#[test]
fn next_client_gets_no_mapped_pages_of_a_lost_client() {
    let live = LiveHost::with(MAPPED_PORT);
    let mut gone = QemuClient::greet(&live.socket(0));
    let old = pages(&mut gone);
    drop(gone);
    eventually("the client is gone", || live.show(0).peer.is_none());
    let mut next = VfGuest::bring_up(qemu::boot_as(&live.socket(0), qemu::MAPPABLE_VF, qemu::share));
    let tail = vf::TX_BLOCK + tx::TDT;
    old.store_dword((tail - MAPPED.start).into(), 5).unwrap();
    assert_eq!(next.machine.read(tail), 0);
    let new = pages(&mut next.machine.vmm);
    assert_eq!(new.load_dword((tail - MAPPED.start).into()), Ok(0));
}
