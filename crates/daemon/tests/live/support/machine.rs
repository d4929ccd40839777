//! Virtual machine as its guest driver sees it, under any VMM: registers, memory and interrupts.

use super::PATIENCE;
use super::ram::GuestRam;
use driver::{DmaAllocation, DmaHal, Hal, OutOfDmaMemory};
use host::eventfd::EventFd;
use host::poll::{MonotonicClock, PollInterest, Poller};
use i82576::Time;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// VFIO region number of BAR 0.
pub(crate) const BAR0: u32 = 0;
pub(crate) const BAR3: u32 = 3;
pub(crate) const CONFIG: u32 = 7;
/// VFIO number of the interrupt type MSI-X.
pub(crate) const MSIX: u32 = 2;
/// Offset of the command register in configuration space.
pub(crate) const COMMAND: u64 = 4;
/// Bits of the command register that enable memory space and bus mastering.
pub(crate) const ENABLE: u16 = 6;

/// Access of a VMM to the registers of its guest's function. When the card is gone, reads return all ones and
/// writes have no effect.
pub(crate) trait Vmm {
    /// Reads a guest's load from a region of the function into `into`.
    fn load(&mut self, region: u32, offset: u64, into: &mut [u8]);
    /// Writes a guest's store of `from` to a region of the function.
    fn store(&mut self, region: u32, offset: u64, from: &[u8]);
}

/// Virtual machine with a function of the card: its VMM, its memory and its interrupt eventfds.
pub(crate) struct VmWithPciFunction<V> {
    pub(crate) vmm: V,
    pub(crate) ram: GuestRam,
    /// Eventfd of each MSI-X vector of the VF.
    pub(crate) eventfds: Vec<EventFd>,
}

impl<V: Vmm> VmWithPciFunction<V> {
    pub(crate) fn new(vmm: V, vectors: u32) -> Self {
        let eventfds = (0..vectors).map(|_| EventFd::new().unwrap()).collect();
        Self { vmm, ram: GuestRam::new(), eventfds }
    }

    pub(crate) fn config_word(&mut self, offset: u64) -> u16 {
        let mut word = [0; 2];
        self.vmm.load(CONFIG, offset, &mut word);
        u16::from_le_bytes(word)
    }

    /// Enables memory space, bus mastering and MSI-X, as a kernel's PCI core does.
    pub(crate) fn enable(&mut self) {
        let command = self.config_word(COMMAND) | ENABLE;
        self.vmm.store(CONFIG, COMMAND, &command.to_le_bytes());
        let control = self.capability(0x11) + 2;
        let word = self.config_word(control) | 1 << 15;
        self.vmm.store(CONFIG, control, &word.to_le_bytes());
    }

    /// Returns the configuration space offset of the capability with this id. Fails if there is no such
    /// capability.
    pub(crate) fn capability(&mut self, id: u8) -> u64 {
        let mut at = u64::from(self.config_word(0x34) & 0xfc);
        while at != 0 {
            let [found, next] = self.config_word(at).to_le_bytes();
            if found == id {
                return at;
            }
            at = next.into();
        }
        panic!("the function has no PCI capability {id:#x}");
    }

    /// Returns copies of the MSI-X vectors' eventfds, to send to the host.
    pub(crate) fn eventfd_copies(&self) -> Vec<OwnedFd> {
        self.eventfds.iter().map(|eventfd| eventfd.as_fd().try_clone_to_owned().unwrap()).collect()
    }

    /// Waits for an interrupt of an MSI-X vector, at most for `patience`. Returns false if none arrives.
    pub(crate) fn wait_for(&self, vector: u16, patience: Duration) -> bool {
        let eventfd = &self.eventfds[usize::from(vector)];
        let mut poller = Poller::new().unwrap();
        poller.add(eventfd, 0, PollInterest::READ).unwrap();
        let signalled = poller.wait(Some(patience.min(PATIENCE))).unwrap().next().is_some();
        eventfd.drain();
        signalled
    }
}

impl<V: Vmm> Hal for VmWithPciFunction<V> {
    fn read(&mut self, offset: u32) -> u32 {
        let mut value = [0; 4];
        self.vmm.load(BAR0, offset.into(), &mut value);
        u32::from_le_bytes(value)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.vmm.store(BAR0, offset.into(), &value.to_le_bytes());
    }

    fn now(&self) -> Time {
        Time::from_nanos(MonotonicClock.now_ns())
    }

    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}

impl<V: Vmm> DmaHal for VmWithPciFunction<V> {
    fn dma_alloc(&mut self, length: usize, align: usize) -> Result<DmaAllocation, OutOfDmaMemory> {
        let iova = self.ram.allocate(length as u64, align as u64).ok_or(OutOfDmaMemory(length))?;
        Ok(DmaAllocation { iova, length })
    }

    fn dma_read(&self, iova: u64, into: &mut [u8]) {
        self.ram.read(iova, into);
        fence(Ordering::Acquire);
    }

    fn dma_write(&mut self, iova: u64, from: &[u8]) {
        fence(Ordering::Release);
        self.ram.write(iova, from);
    }
}
