//! A VF as a vfio-user device: regions, interrupts and memory of one client, led to the card. Left out: the
//! protocol, and the socket.

use super::bus::Reach;
use super::hal::{Card, now};
use host::dma::Permissions;
use host::eventfd::EventFd;
use i82576::VfIndex;
use i82576::ids::{BAR3_SIZE, VF_BAR0_SIZE, VF_VECTORS};
use iovm::Manager;
use nic::Nic;
use pcie::Function;
use std::os::fd::OwnedFd;
use vfio_user::server::{Device, DmaMap, IrqSet, RegionInfo};
use vfio_user::types::{DeviceInfo, IrqInfo};
use vfio_user::wire::{Errno, device_flags, irq_flags, pci_irq, pci_region, region_flags};

/// One VF and what it needs to answer a message.
pub(super) struct VfDevice<'a> {
    pub(super) index: VfIndex,
    pub(super) nic: &'a mut Nic,
    pub(super) manager: &'a mut Manager,
    pub(super) reach: &'a mut Reach,
}

impl VfDevice<'_> {
    fn function(&self) -> Function {
        Function::Vf(self.index.get())
    }
}

impl Device<OwnedFd> for VfDevice<'_> {
    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            flags: device_flags::PCI | device_flags::RESET,
            regions: pci_region::COUNT,
            irqs: pci_irq::COUNT,
        }
    }

    fn region(&self, index: u32) -> Option<RegionInfo<'_>> {
        let size = match index {
            pci_region::BAR0 => VF_BAR0_SIZE,
            pci_region::BAR3 => BAR3_SIZE,
            pci_region::CONFIG => pcie::config::SIZE,
            index if index < pci_region::COUNT => 0,
            _ => return None,
        };
        let flags = if size > 0 { region_flags::READ | region_flags::WRITE } else { 0 };
        Some(RegionInfo { size: size as u64, flags, ..RegionInfo::default() })
    }

    fn region_fd(&mut self, _index: u32) -> Option<OwnedFd> {
        None
    }

    fn irq(&self, index: u32) -> Option<IrqInfo> {
        let count = if index == pci_irq::MSIX { VF_VECTORS as u32 } else { 0 };
        let flags = if count > 0 { irq_flags::EVENTFD | irq_flags::NORESIZE } else { 0 };
        (index < pci_irq::COUNT).then_some(IrqInfo { flags, count })
    }

    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) {
        match region {
            pci_region::BAR0 => self.nic.read_bytes(self.function(), offset, data, now()),
            pci_region::BAR3 => {
                if let Some(function) = self.manager.function(self.index) {
                    function.msix_read(offset, data);
                }
            }
            pci_region::CONFIG => self.manager.config_read(self.index, offset, data),
            _ => {}
        }
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        match region {
            pci_region::BAR0 => self.nic.write_bytes(self.function(), offset, data, now()),
            pci_region::BAR3 => {
                if let Some(function) = self.manager.function_mut(self.index) {
                    function.msix_write(offset, data);
                }
            }
            pci_region::CONFIG => {
                self.manager.config_write(&mut Card(self.nic), self.index, offset, data);
            }
            _ => {}
        }
    }

    fn dma_map(&mut self, map: DmaMap<OwnedFd>) -> Result<(), Errno> {
        let permissions = Permissions { read: map.readable, write: map.writable };
        let file = map.file.map(|file| (file.fd, file.offset));
        let mapped = self.reach.memory.map(map.iova, map.size, permissions, file);
        mapped.map_err(|error| errno(error.errno()))
    }

    fn dma_unmap(&mut self, iova: u64, size: u64) {
        // The card moves frames in this thread only, so nothing is in flight. A window that is not there was
        // refused when it was to be mapped.
        let _ = self.reach.memory.unmap(iova, size);
    }

    fn dma_unmap_all(&mut self) {
        self.reach.memory.unmap_all();
    }

    fn set_irqs(&mut self, set: IrqSet<OwnedFd>) -> Result<(), Errno> {
        match set {
            // Clients switch off types that they never switched on.
            IrqSet::Disable { index } if index != pci_irq::MSIX => {}
            IrqSet::Disable { .. } => self.reach.vectors = [const { None }; VF_VECTORS],
            IrqSet::Assign { start, fds, .. } => {
                // All are looked at before one is taken.
                let eventfds = fds.into_iter().map(EventFd::adopt).collect::<Result<Vec<_>, _>>();
                let eventfds = eventfds.map_err(|error| errno(error.errno()))?;
                for (vector, eventfd) in self.reach.vectors.iter_mut().skip(start as usize).zip(eventfds) {
                    *vector = Some(eventfd);
                }
            }
            IrqSet::Deassign { vectors, .. } => {
                for vector in vectors {
                    if let Some(vector) = self.reach.vectors.get_mut(vector as usize) {
                        *vector = None;
                    }
                }
            }
            IrqSet::Trigger { vector, .. } => {
                if let Some(Some(eventfd)) = self.reach.vectors.get(vector as usize) {
                    eventfd.signal();
                }
            }
            IrqSet::Mask { .. } | IrqSet::Unmask { .. } => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Errno> {
        self.manager.reset(&mut Card(self.nic), self.index).map_err(|_| Errno::EIO)
    }
}

fn errno(number: i32) -> Errno {
    u32::try_from(number).map_or(Errno::EIO, Errno)
}
