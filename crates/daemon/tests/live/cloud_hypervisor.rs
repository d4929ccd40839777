//! Tests with a VMM like Cloud Hypervisor, which uses the client of the published `vfio_user` crate, and of the replies
//! that this client depends on.

use crate::support::cloud_hypervisor;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::machine::Vmm;
use std::os::fd::AsRawFd;
use std::time::Duration;

#[test]
fn two_guests_exchange_frames_by_interrupt() {
    let live = LiveHost::start();
    let mut a = VfGuest::under_cloud_hypervisor(&live, 0);
    let mut b = VfGuest::under_cloud_hypervisor(&live, 1);
    exchange(&mut a, &mut b, 50);
    let counted = live.show(0).interventions;
    assert_eq!(counted.posted_writes, 0, "the client posts writes");
    assert!(counted.synchronous_writes > 0);
}

#[test]
fn guests_under_qemu_and_cloud_hypervisor_exchange_frames() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_cloud_hypervisor(&live, 5), VfGuest::under_qemu(&live, 6));
    exchange(&mut a, &mut b, 20);
}

#[test]
fn vfio_user_access_outside_all_regions_gets_a_full_reply() {
    // An error reply has no data, and the client would wait for the data forever.
    let live = LiveHost::start();
    let mut machine = cloud_hypervisor::boot(&live.socket(0));
    for (region, offset) in [(0, 0x4000), (1, 0), (6, 0), (7, 0x1000), (8, 0), (200, 0), (0, u64::MAX - 3)] {
        let mut data = [0; 8];
        machine.vmm.0.region_write(region, offset, &[0; 8]).unwrap();
        machine.vmm.0.region_read(region, offset, &mut data).unwrap();
        assert_eq!(data, [0xff; 8], "region {region} at {offset:#x}");
    }
    let mut ids = [0; 4];
    machine.vmm.load(7, 0, &mut ids);
    assert_eq!(ids, [0x86, 0x80, 0xca, 0x10], "the stream is out of step");
}

#[test]
fn unmap_after_a_refused_map_gets_a_full_reply() {
    // The client ignores the error of a map. It would wait for the rest of an error reply to the unmap forever.
    let live = LiveHost::with("client_memory = \"16M\"\n[[port]]\nvfs = 1\n");
    let mut machine = cloud_hypervisor::boot(&live.socket(0));
    let hotplugged = tempfile::tempfile().unwrap();
    hotplugged.set_len(16 << 20).unwrap();
    for _ in 0..2 {
        machine.vmm.0.dma_map(0, 1 << 40, 16 << 20, hotplugged.as_raw_fd()).unwrap();
        machine.vmm.0.dma_unmap(1 << 40, 16 << 20).unwrap();
    }
    let mut ids = [0; 4];
    machine.vmm.load(7, 0, &mut ids);
    assert_eq!(ids, [0x86, 0x80, 0xca, 0x10], "the stream is out of step");
}

#[test]
fn interrupt_vectors_are_disabled_and_enabled_as_a_set() {
    let live = LiveHost::start();
    let (mut a, mut b) = (VfGuest::under_cloud_hypervisor(&live, 0), VfGuest::under_qemu(&live, 1));
    // The driver handles earlier interrupts.
    assert_eq!(a.receive_within(Duration::from_millis(50)), Vec::<Vec<u8>>::new());
    a.machine.vmm.0.set_irqs(2, 1 | 32, 0, 0, &[]).unwrap();
    assert!(b.send(a.vf.mac(), &[1; 60]));
    assert_eq!(a.receive_within(Duration::from_millis(50)), Vec::<Vec<u8>>::new());
    let copies = a.machine.eventfd_copies();
    let fds: Vec<i32> = copies.iter().map(AsRawFd::as_raw_fd).collect();
    a.machine.vmm.0.set_irqs(2, 4 | 32, 0, 3, &fds).unwrap();
    assert_eq!(a.receive(), [[1; 60]], "the interrupt that had no eventfd is lost");
    exchange(&mut a, &mut b, 3);
}
