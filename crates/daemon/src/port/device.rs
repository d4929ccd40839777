//! A function as a vfio-user device: regions, interrupts and memory of one client, led to the card. Left out: the
//! protocol, and the socket.

use super::bus::{LiveBus, Reach};
use super::hal::now;
use super::journal::Window;
use super::keeping::Keeping;
use super::side::{Side, vf};
use host::dma::Permissions;
use host::eventfd::EventFd;
use i82576::config::pf::IO_SIZE;
use i82576::ids::{BAR3_SIZE, PF_BAR0_SIZE, VF_BAR0_SIZE};
use nic::Nic;
use pcie::Function;
use std::os::fd::{AsFd, OwnedFd};
use vfio_user::server::{Completion, Device, DmaMap, IrqSet, RegionInfo};
use vfio_user::types::{DeviceInfo, IrqInfo};
use vfio_user::wire::{Errno, device_flags, irq_flags, pci_irq, pci_region, region_flags};

/// One function and what it needs to answer a message.
pub(super) struct FunctionDevice<'a> {
    pub(super) function: Function,
    pub(super) nic: &'a mut Nic,
    pub(super) side: &'a mut Side,
    pub(super) bus: &'a mut LiveBus,
    pub(super) keeping: &'a mut Keeping,
}

impl FunctionDevice<'_> {
    fn reach(&mut self) -> &mut Reach {
        self.bus.reach_mut(self.function)
    }

    /// The eventfds of an interrupt type; none of a type that is not there.
    fn eventfds(&mut self, index: u32) -> &mut [Option<EventFd>] {
        self.reach().eventfds.get_mut(index as usize).map_or(&mut [], |eventfds| eventfds)
    }

    /// Gives a vector another eventfd, or none; vectors that are not there stay so.
    fn set_eventfd(&mut self, index: u32, vector: u32, eventfd: Option<EventFd>) {
        self.keeping.eventfd(index, vector, eventfd.as_ref().map(AsFd::as_fd));
        if let Some(place) = self.eventfds(index).get_mut(vector as usize) {
            *place = eventfd;
        }
    }

    /// A pin that has a new listener, or none, is not masked.
    fn unmask_new(&mut self, index: u32) {
        if index == pci_irq::INTX {
            self.bus.mask_pin(self.function, false);
        }
    }
}

impl Device<OwnedFd> for FunctionDevice<'_> {
    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            flags: device_flags::PCI | device_flags::RESET,
            regions: pci_region::COUNT,
            irqs: pci_irq::COUNT,
        }
    }

    fn region(&self, index: u32) -> Option<RegionInfo<'_>> {
        let is_vf = vf(self.function).is_some();
        let size = match index {
            pci_region::BAR0 if is_vf => VF_BAR0_SIZE,
            pci_region::BAR0 => PF_BAR0_SIZE,
            pci_region::BAR2 if !is_vf => IO_SIZE as usize,
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
        let count = self
            .bus
            .reach(self.function)
            .eventfds
            .get(index as usize)
            .map_or(0, |eventfds| eventfds.len() as u32);
        let kind = if index == pci_irq::INTX {
            irq_flags::MASKABLE | irq_flags::AUTOMASKED
        } else {
            irq_flags::NORESIZE
        };
        let flags = if count > 0 { irq_flags::EVENTFD | kind } else { 0 };
        (index < pci_irq::COUNT).then_some(IrqInfo { flags, count })
    }

    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) {
        match region {
            pci_region::BAR0 => self.nic.read_bytes(self.function, offset, data, now()),
            pci_region::BAR2 => self.nic.io_read(offset, data, now()),
            pci_region::BAR3 => self.side.msix_read(self.function, offset, data),
            pci_region::CONFIG => self.side.config_read(self.nic, self.function, offset, data),
            _ => {}
        }
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        match region {
            pci_region::BAR0 => self.nic.write_bytes(self.function, offset, data, now()),
            pci_region::BAR2 => self.nic.io_write(offset, data, now()),
            pci_region::BAR3 => self.side.msix_write(self.function, offset, data),
            pci_region::CONFIG => self.side.config_write(self.nic, self.function, offset, data),
            _ => {}
        }
    }

    fn dma_map(&mut self, map: DmaMap<OwnedFd>) -> Result<Completion, Errno> {
        let DmaMap { iova, size, readable, writable, file } = map;
        let permissions = Permissions { read: readable, write: writable };
        let copy = match &file {
            Some(file) => Some(file.fd.try_clone().map_err(|_| Errno::ENOSPC)?),
            None => None,
        };
        let offset = file.as_ref().map_or(0, |file| file.offset);
        let mapped =
            self.reach().memory.map(iova, size, permissions, file.map(|file| (file.fd, file.offset)));
        mapped.map_err(|error| errno(error.errno()))?;
        let window = Window { iova, size, permissions, file: 0, offset };
        self.keeping.mapped(window, copy.as_ref().map(AsFd::as_fd));
        Ok(Completion::Now)
    }

    fn dma_unmap(&mut self, iova: u64, size: u64) {
        // The card moves frames in this thread only, so nothing is in flight. Windows that are not there
        // were refused when they were to be mapped.
        let _ = self.reach().memory.unmap(iova, size);
        self.keeping.unmapped(iova, size);
    }

    fn dma_unmap_all(&mut self) {
        self.reach().memory.unmap_all();
        self.keeping.unmapped_all();
    }

    fn set_irqs(&mut self, set: IrqSet<OwnedFd>) -> Result<Completion, Errno> {
        match set {
            // Clients switch off types that they never switched on, and that are not there.
            IrqSet::Disable { index } => {
                for vector in 0..self.eventfds(index).len() as u32 {
                    self.set_eventfd(index, vector, None);
                }
                self.unmask_new(index);
            }
            IrqSet::Assign { index, start, fds } => {
                // All are looked at before one is taken.
                let eventfds = fds.into_iter().map(EventFd::adopt).collect::<Result<Vec<_>, _>>();
                let eventfds = eventfds.map_err(|error| errno(error.errno()))?;
                for (vector, eventfd) in (start..).zip(eventfds) {
                    self.set_eventfd(index, vector, Some(eventfd));
                }
                self.unmask_new(index);
            }
            IrqSet::Deassign { index, vectors } => {
                vectors.for_each(|vector| self.set_eventfd(index, vector, None));
            }
            IrqSet::Trigger { index, vector } => {
                self.bus.signal(self.function, index, vector);
            }
            // The pin alone can be masked, and the session lets nothing else through to here.
            IrqSet::Mask { .. } => self.bus.mask_pin(self.function, true),
            IrqSet::Unmask { .. } => self.bus.mask_pin(self.function, false),
        }
        Ok(Completion::Now)
    }

    fn reset(&mut self) -> Result<(), Errno> {
        if self.side.reset(self.nic, self.function) { Ok(()) } else { Err(Errno::EIO) }
    }
}

fn errno(number: i32) -> Errno {
    u32::try_from(number).map_or(Errno::EIO, Errno)
}
