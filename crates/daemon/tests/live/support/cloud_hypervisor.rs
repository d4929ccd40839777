//! A VMM that behaves like Cloud Hypervisor: the published `vfio_user` crate's client, which waits for every access and
//! assigns all eventfds at once.

use super::machine::{CONFIG, MSIX, VmWithPciFunction, Vmm};
use super::ram::{HIGH, HOLE, SIZE};
use i82576::ids::VF_VECTORS;
use published_vfio_user::Client;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use vfio_user::wire::irq_set;

/// Cloud Hypervisor's connection to a VF.
pub(crate) struct CloudHypervisorClient(pub(crate) Client);

impl Vmm for CloudHypervisorClient {
    fn load(&mut self, region: u32, offset: u64, into: &mut [u8]) {
        // Errors are ignored by Cloud Hypervisor too.
        if self.0.region_read(region, offset, into).is_err() {
            into.fill(0xff);
        }
    }

    fn store(&mut self, region: u32, offset: u64, from: &[u8]) {
        let _ = self.0.region_write(region, offset, from);
    }
}

/// Connects to the function at the socket `path`, and performs Cloud Hypervisor's steps up to the start of the guest's
/// driver.
pub(crate) fn boot(path: &Path) -> VmWithPciFunction<CloudHypervisorClient> {
    let mut client = Client::new(path).unwrap();
    // The crate has the sense of the flag inverted, so it resets devices that do not claim to support a reset.
    if !client.resettable() {
        client.reset().unwrap();
    }
    let sizes: Vec<u64> = (0..9).map(|index| client.region(index).unwrap().size).collect();
    assert_eq!(sizes, [0x4000, 0, 0, 0x4000, 0, 0, 0, 0x1000, 0]);
    assert_eq!(client.get_irq_info(MSIX).unwrap().count, 3);
    assert_eq!(client.get_irq_info(0).unwrap().count, 0, "an INTx would be unmasked at every access");
    let mut machine = VmWithPciFunction::new(CloudHypervisorClient(client), VF_VECTORS as u32);
    size_bars(&mut machine.vmm);
    let fd = machine.ram.fd();
    let client = &mut machine.vmm.0;
    client.dma_map(0, 0, HOLE, fd.as_raw_fd()).unwrap();
    client.dma_map(HIGH, HIGH, SIZE - HIGH, fd.as_raw_fd()).unwrap();
    let fds: Vec<RawFd> = machine.eventfds.iter().map(|e| std::os::fd::AsFd::as_fd(e).as_raw_fd()).collect();
    client.set_irqs(MSIX, irq_set::DATA_EVENTFD | irq_set::ACTION_TRIGGER, 0, 3, &fds).unwrap();
    machine.enable();
    machine
}

/// Writes ones to the BARs and the ROM's address register, checks the sizes that they then read, and restores the
/// registers.
fn size_bars(vmm: &mut CloudHypervisorClient) {
    for (register, mask) in [(0x10, 0xffff_c000), (0x1c, 0xffff_c000), (0x30, 0)] {
        let mut before = [0; 4];
        vmm.load(CONFIG, register, &mut before);
        vmm.store(CONFIG, register, &[0xff; 4]);
        let mut sized = [0; 4];
        vmm.load(CONFIG, register, &mut sized);
        assert_eq!(u32::from_le_bytes(sized) & !0xf, mask, "BAR at {register:#x}");
        vmm.store(CONFIG, register, &before);
    }
}
