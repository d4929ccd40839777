//! A function as a vfio-user device: regions, interrupts and memory of one client, led to the card. Left out: the
//! protocol, and the socket.

use super::bus::{LiveBus, Reach};
use super::errand::{Errands, Mapped, Outcome};
use super::family::Family;
use super::hal::now;
use super::journal::{Irq, Window};
use super::keeping::Keeping;
use super::pages::SharedPages;
use crate::flight::{Flight, Place, What};
use host::dma::{MapRegionError, Permissions};
use host::eventfd::EventFd;
use host::worker::LateFd;
use pcie::Function;
use vfio_user::server::{Completion, Device, DmaMap, IrqSet, RegionInfo};
use vfio_user::types::{DeviceInfo, IrqInfo};
use vfio_user::wire::{Errno, device_flags, irq_flags, pci_irq, pci_region, region_flags};

/// One function and what it needs to answer a message.
pub(super) struct FunctionDevice<'a> {
    pub(super) function: Function,
    pub(super) card: &'a mut dyn Family,
    pub(super) bus: &'a mut LiveBus,
    pub(super) keeping: &'a mut Keeping,
    /// What the client may map.
    pub(super) pages: &'a mut Option<SharedPages>,
    pub(super) flight: &'a mut Flight,
}

impl FunctionDevice<'_> {
    fn reach(&mut self) -> &mut Reach {
        self.bus.reach_mut(self.function)
    }

    /// Before an access by message the card takes the guest's stores into its pages, and after it
    /// ([`show`](Self::show)) it updates the pages.
    fn look(&mut self) {
        if let Some(pages) = self.pages {
            pages.look(self.card);
        }
    }

    fn show(&mut self) {
        if let Some(pages) = self.pages {
            pages.show(self.card);
        }
    }

    /// Resets the function, shows that in its pages and notes it for a successor. Returns `false` if the reset fails.
    pub(super) fn reset_function(&mut self) -> bool {
        let done = self.card.reset_function(self.function);
        self.show();
        self.keeping.note_software(self.card);
        done
    }

    /// A store into BAR0.
    fn write_register(&mut self, offset: u64, data: &[u8]) {
        if self.pages.as_ref().is_some_and(|pages| pages.store(offset, data)) {
            self.look();
        } else {
            self.card.write(self.function, pci_region::BAR0, offset, data);
        }
    }

    /// What is done for the function's client elsewhere.
    pub(super) fn errands(&mut self) -> &mut Errands {
        &mut self.reach().errands
    }

    /// The eventfds of an interrupt type; none of a type that is not there.
    fn eventfds(&mut self, index: u32) -> &mut [Option<EventFd>] {
        self.reach().eventfds.get_mut(index as usize).map_or(&mut [], |eventfds| eventfds)
    }

    /// Puts to use what an errand has come to. Answers what the client is to be told.
    pub(super) fn finish(&mut self, outcome: Outcome) -> Result<(), Errno> {
        match outcome {
            Outcome::Mapped(Ok(Mapped { region, window, identity })) => {
                let reach = self.bus.reach_mut(self.function);
                // The client's later messages wait for this one, so none of them has mapped these addresses.
                reach.memory.insert(region).map_err(|region| {
                    reach.errands.discard(region);
                    Errno::EEXIST
                })?;
                self.keeping.mapped(&window, Some(identity));
                Ok(())
            }
            Outcome::Mapped(Err(error)) => Err(self.reach().refuse(error)),
            Outcome::Assigned { index, start, eventfds } => {
                let eventfds = eventfds.map_err(|error| {
                    let number = errno(error.errno());
                    self.reach().refused_eventfd = Some(error);
                    number
                })?;
                for (vector, (eventfd, number)) in (start..).zip(eventfds) {
                    self.set_eventfd(index, vector, Some(eventfd), number);
                }
                self.unmask_new(index);
                Ok(())
            }
            Outcome::PartialKept(numbers) => {
                self.keeping.partial_kept(numbers);
                Ok(())
            }
            Outcome::CaughtUp => {
                self.keeping.arrived();
                Ok(())
            }
        }
    }

    /// Gives a vector another eventfd, kept under this number, or none; vectors that are not there stay so.
    fn set_eventfd(&mut self, index: u32, vector: u32, eventfd: Option<EventFd>, number: u64) {
        self.keeping.eventfd(Irq { index, vector, number });
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

impl Device<LateFd> for FunctionDevice<'_> {
    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            flags: device_flags::PCI | device_flags::RESET,
            regions: pci_region::COUNT,
            irqs: pci_irq::COUNT,
        }
    }

    fn region(&self, index: u32) -> Option<RegionInfo<'_>> {
        if index >= pci_region::COUNT {
            return None;
        }
        let size = self.card.region(self.function, index);
        let flags = if size > 0 { region_flags::READ | region_flags::WRITE } else { 0 };
        let info = RegionInfo { size: size as u64, flags, ..RegionInfo::default() };
        if let Some(pages) = self.pages.as_ref().filter(|_| index == pci_region::BAR0) {
            return Some(RegionInfo { flags: flags | region_flags::MMAP, sparse: pages.areas, ..info });
        }
        Some(info)
    }

    fn region_fd(&mut self, index: u32) -> Option<LateFd> {
        let pages = self.pages.as_mut().filter(|_| index == pci_region::BAR0)?;
        let fd = pages.give(self.card).ok()?;
        Some(self.errands().keep(fd))
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
        self.look();
        self.card.read(self.function, region, offset, data);
        self.show();
        self.flight.access(now(), What::Read(Place { region, offset }), data);
    }

    fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        self.flight.access(now(), What::Write(Place { region, offset }), data);
        self.look();
        match region {
            pci_region::BAR0 => self.write_register(offset, data),
            _ => self.card.write(self.function, region, offset, data),
        }
        self.show();
        if matches!(region, pci_region::BAR3 | pci_region::CONFIG) {
            self.keeping.note_software(self.card);
        }
    }

    fn dma_map(&mut self, map: DmaMap<LateFd>) -> Result<Completion, Errno> {
        let DmaMap { iova, size, readable, writable, file } = map;
        let permissions = Permissions { read: readable, write: writable };
        let offset = file.as_ref().map(|file| file.offset);
        let window = Window { iova, size, permissions, file: 0, offset: offset.unwrap_or(0) };
        let reach = self.bus.reach_mut(self.function);
        match reach.memory.admit(iova, size, permissions, offset) {
            Ok(region) => {
                let Some((region, file)) = region.zip(file) else {
                    self.keeping.mapped(&window, None);
                    return Ok(Completion::Now);
                };
                reach.errands.map(region, file.fd, window, self.keeping.keeper());
                Ok(Completion::Later)
            }
            Err(error) => Err(reach.refuse(error)),
        }
    }

    fn dma_unmap(&mut self, iova: u64, size: u64) {
        // The card moves frames in this thread only, so nothing is in flight. Windows that are not there
        // were refused when they were to be mapped.
        let reach = self.bus.reach_mut(self.function);
        if let Ok(removed) = reach.memory.unmap(iova, size) {
            reach.errands.unmap(removed);
        }
        self.keeping.unmapped(iova, size);
    }

    fn dma_unmap_all(&mut self) {
        let reach = self.bus.reach_mut(self.function);
        let removed = reach.memory.unmap_all();
        reach.errands.unmap(removed);
        self.keeping.unmapped_all();
    }

    fn set_irqs(&mut self, set: IrqSet<LateFd>) -> Result<Completion, Errno> {
        match set {
            // Clients switch off types that they never switched on, and that are not there.
            IrqSet::Disable { index } => {
                for vector in 0..self.eventfds(index).len() as u32 {
                    self.set_eventfd(index, vector, None, 0);
                }
                self.unmask_new(index);
            }
            IrqSet::Assign { index, start, fds } => {
                let keeper = self.keeping.keeper_of(fds.len());
                self.reach().errands.assign(index, start, fds, keeper);
                return Ok(Completion::Later);
            }
            IrqSet::Deassign { index, vectors } => {
                vectors.for_each(|vector| self.set_eventfd(index, vector, None, 0));
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
        self.look();
        self.flight.event(now(), What::Said("reset by the client"), 0);
        if self.reset_function() { Ok(()) } else { Err(Errno::EIO) }
    }
}

impl Reach {
    /// Keeps a refusal for the log. Answers what the client is to be told.
    fn refuse(&mut self, error: MapRegionError) -> Errno {
        let number = errno(error.errno());
        self.refused = Some(error);
        number
    }
}

fn errno(number: i32) -> Errno {
    u32::try_from(number).map_or(Errno::EIO, Errno)
}
