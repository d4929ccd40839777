//! Guest with an Adaptive Virtual Function whose VMM maps doorbell pages.

use super::eventually;
use super::live::LiveHost;
use super::machine::{BAR0, VmWithPciFunction, Vmm};
use super::numbers::NumberedGuest;
use super::qemu::{self, ExpectedPciFunction, QemuClient};
use driver::avf::vf::AvfDriver;
use host::memory::{MappedFile, MemoryProtection};
use i82576::MacAddress;
use std::iter::from_fn;
use std::os::fd::OwnedFd;
use vfio_user::client::{Client, ReplyContents};

/// Speed of an AVF's link, Mb/s.
const SPEED: Option<u32> = Some(25_000);

/// QEMU client that has mapped the mappable areas of BAR 0 into the test, as QEMU maps doorbell pages.
pub(crate) struct BarMappingVmm {
    pub(crate) qemu: QemuClient,
    /// Offset, length and mapped memory of each mappable area of BAR 0.
    pub(crate) areas: Vec<(u64, u64, MappedFile)>,
}

impl BarMappingVmm {
    fn new(mut qemu: QemuClient) -> Self {
        let ask = |client: &mut Client<OwnedFd>, out: &mut _| client.region_info(out, BAR0, 128);
        let answered = qemu.ask_for_file(ask, |answer, fds| match answer {
            Ok(ReplyContents::Region(layout)) => (layout, fds),
            other => panic!("unexpected answer {other:?}"),
        });
        let (layout, fds) = answered.unwrap();
        let map = |offset, size| {
            MappedFile::map(&fds[0], layout.offset + offset, size, MemoryProtection::ReadWrite)
        };
        let areas =
            layout.sparse.iter().map(|area| (area.offset, area.size, map(area.offset, area.size).unwrap()));
        let areas = areas.collect();
        Self { qemu, areas }
    }

    /// Returns the mapped area that holds a register, and the register's offset in the area; `None` if the register is
    /// not mapped.
    fn area(&self, region: u32, offset: u64) -> Option<(&MappedFile, u64)> {
        let within = |(start, size, _): &&(u64, u64, MappedFile)| (*start..start + size).contains(&offset);
        let (start, _, memory) = self.areas.iter().find(within).filter(|_| region == BAR0)?;
        Some((memory, offset - start))
    }
}

impl Vmm for BarMappingVmm {
    fn load(&mut self, region: u32, offset: u64, into: &mut [u8]) {
        match self.area(region, offset) {
            Some((memory, at)) => into.copy_from_slice(&memory.load_dword(at).unwrap().to_le_bytes()),
            None => self.qemu.load(region, offset, into),
        }
    }

    fn store(&mut self, region: u32, offset: u64, from: &[u8]) {
        match self.area(region, offset) {
            Some((memory, at)) => {
                memory.store_dword(at, u32::from_le_bytes(from.try_into().unwrap())).unwrap();
            }
            None => self.qemu.store(region, offset, from),
        }
    }
}

/// Guest with mapped doorbells, and its AVF driver, which has enabled the VF and sees its link.
pub(crate) struct BarMappingGuest {
    pub(crate) machine: VmWithPciFunction<BarMappingVmm>,
    pub(crate) driver: AvfDriver,
}

impl BarMappingGuest {
    pub(crate) fn boot(live: &LiveHost, vf: u8, shape: ExpectedPciFunction) -> Self {
        let VmWithPciFunction { vmm, ram, eventfds } = qemu::boot_as(&live.socket(vf), shape, qemu::share);
        let mut machine = VmWithPciFunction { vmm: BarMappingVmm::new(vmm), ram, eventfds };
        let mut driver = AvfDriver::probe(&mut machine, MacAddress([2, 0, 0, 0, 9, vf])).unwrap();
        driver.start(&mut machine).unwrap();
        eventually("the link is up", || driver.look(&mut machine) == SPEED);
        Self { machine, driver }
    }

    /// Sends a frame to `to` if the transmit ring has room, and returns the number of frames received since the last
    /// call.
    pub(crate) fn exchange(&mut self, to: MacAddress) -> usize {
        let mut frame = [to.0, self.driver.mac().0].concat();
        frame.extend([0x88, 0xb5]);
        frame.resize(600, 7);
        self.driver.transmit(&mut self.machine, 1, &frame);
        let (driver, machine, mut into) = (&mut self.driver, &mut self.machine, [0; 2048]);
        (0..4).map(|queue| from_fn(|| driver.receive(machine, queue, &mut into)).count()).sum()
    }

    /// Checks that the driver has seen no reset and no change of its link.
    pub(crate) fn has_noticed_nothing(&mut self) {
        assert_eq!(self.driver.look(&mut self.machine), SPEED);
        assert!(!self.driver.was_reset(&mut self.machine) && !self.driver.is_reset_impending());
    }
}

impl NumberedGuest for BarMappingGuest {
    fn send(&mut self, payload: &[u8]) {
        let mut frame = [&[0xff; 6][..], &self.driver.mac().0, &[0x88, 0xb5], payload].concat();
        frame.resize(60, 0);
        assert!(self.driver.transmit(&mut self.machine, 0, &frame));
    }

    fn take(&mut self) -> Vec<Vec<u8>> {
        let (driver, machine, mut into) = (&mut self.driver, &mut self.machine, [0; 2048]);
        let received = (0..4).flat_map(|queue| {
            from_fn(|| driver.receive(machine, queue, &mut into).map(|got| into[14..got.length].to_vec()))
                .collect::<Vec<_>>()
        });
        received.collect()
    }
}
