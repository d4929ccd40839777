//! Function of the card as a vfio-user device: turns the messages of a client about regions, interrupts and memory
//! into accesses to the card. `vfio_user` has the protocol, and `connection` the socket.

use super::errand::{BlockingCallOutcome, BlockingCallQueue, MappedDmaWindow};
use super::holdings::ClientResources;
use super::journal::{SavedDmaWindow, SavedEventfd};
use crate::flight::{FlightRecordKind, RegisterLocation};
use crate::port::engine::PortEngine;
use host::dma::{DmaPermissions, MapDmaRegionError};
use host::eventfd::EventFd;
use host::worker::DeferredCloseFd;
use i82576::Time;
use pcie::Function;
use units::WorkCost;
use vfio_user::server::{DmaWindow, IrqChange, RegionInfo, RequestCompletionTiming, ServedDevice};
use vfio_user::types::{DeviceInfo, IrqInfo};
use vfio_user::wire::{Errno, device_flags, irq_flags, pci_irq, pci_region, region_flags};

/// Bytes of a client's long access that are read or written before the function's account is looked at again. Pieces begin
/// at multiples of this number, so that no register is accessed in two pieces.
const PIECE: usize = 64;

/// Function of the card as a vfio-user device, with the resources that handle its client's messages.
pub(in crate::port) struct VfioFunction<'a> {
    pub(super) function: Function,
    pub(super) engine: &'a mut PortEngine,
    pub(super) own: &'a mut ClientResources,
    /// Arrival time of the client's message that is being handled.
    pub(super) now: Time,
}

impl VfioFunction<'_> {
    /// Has the card read the doorbells that the guest has stored into its register pages, before an access by message.
    fn read_doorbells(&mut self) {
        if let Some(pages) = &self.own.pages {
            pages.read_doorbells(self.engine.card_mut(), self.now);
        }
    }

    /// Has the card store its registers into the guest's register pages, after an access by message.
    fn publish_registers(&mut self) {
        if let Some(pages) = self.own.pages.as_ref().filter(|pages| pages.are_given()) {
            self.own.account.charge(WorkCost::PAGES);
            pages.publish_registers(self.engine.card_mut(), self.now);
        }
    }

    /// Resets the function, and shows the reset registers in its mapped pages. The caller saves the configuration
    /// ([`Self::save_configuration`]). Returns `false` if the reset fails.
    fn reset_function(&mut self) -> bool {
        let done = self.engine.card_mut().reset_function(self.function);
        self.finish_reset();
        done
    }

    /// Resets the function, as [`Self::reset_function`] does, after its client has left.
    pub(super) fn reset_for_next_client(&mut self) -> bool {
        let done = self.engine.card_mut().reset_for_next_client(self.function);
        self.finish_reset();
        done
    }

    fn finish_reset(&mut self) {
        self.engine.reach_mut(self.function).forget_missed();
        self.own.account.charge(WorkCost::LADDER);
        self.publish_registers();
        self.own.configuration_changed = true;
    }

    /// Saves the function's PCI configuration for the successor process, if it may have changed. A message counts as
    /// unhandled until the step that follows, so a successor that finds an older configuration handles the message
    /// again. One save for all accesses of a step: a guest that writes a thousand times in one message must not have
    /// the port encode its configuration a thousand times.
    pub(super) fn save_configuration(&mut self) {
        if std::mem::take(&mut self.own.configuration_changed) {
            self.own.account.charge(WorkCost::SAVE);
            self.own.successor.note_configuration(self.engine.card_mut());
        }
    }

    /// Discards the cost of resets that were not this client's, such as those by the PF driver.
    fn forget_work(&mut self) {
        self.engine.card_mut().take_work();
    }

    /// Charges the function's account with the cost of an access, and with further work that the card had by it, such
    /// as a reset.
    fn charge(&mut self, cost: WorkCost) {
        self.own.account.charge(cost + self.engine.card_mut().take_work());
    }

    /// Charges the function's account for the windows that are removed in the `size` bytes at `iova`, and for those behind,
    /// which move in the table.
    fn charge_windows(&mut self, iova: u64, size: u64) {
        let (removed, moved) = self.engine.reach(self.function).memory().regions_from(iova, size);
        self.own.account.charge(WorkCost::of_windows(removed, moved));
    }

    /// Writes a client's data to BAR0 of the function.
    fn write_register(&mut self, offset: u64, data: &[u8]) {
        if self.own.pages.as_ref().is_some_and(|pages| pages.store(offset, data)) {
            self.read_doorbells();
        } else {
            self.engine.card_mut().write(self.function, pci_region::BAR0, offset, data, self.now);
        }
    }

    /// Returns the pending blocking calls of the function's client.
    pub(super) fn errands(&mut self) -> &mut BlockingCallQueue {
        &mut self.own.errands
    }

    /// Applies the outcome of a client's blocking call, which the worker thread has finished. Returns the reply to the
    /// client.
    pub(super) fn finish(&mut self, outcome: BlockingCallOutcome) -> Result<(), Errno> {
        match outcome {
            BlockingCallOutcome::Mapped(Ok(MappedDmaWindow { region, window, identity })) => {
                self.charge_windows(window.iova, 0);
                // The client's later messages wait for this one. So none of them has mapped these addresses.
                self.engine.reach_mut(self.function).memory_mut().insert(region).map_err(|region| {
                    self.own.errands.discard(region);
                    Errno::EEXIST
                })?;
                self.own.successor.mapped(&window, Some(identity));
                Ok(())
            }
            BlockingCallOutcome::Mapped(Err(error)) => Err(self.refuse(error)),
            BlockingCallOutcome::Assigned { index, start, eventfds } => {
                let eventfds = eventfds.map_err(|error| {
                    let number = errno(error.errno());
                    self.own.refused_eventfd = Some(error);
                    number
                })?;
                for (vector, (eventfd, number)) in (start..).zip(eventfds) {
                    self.set_eventfd(index, vector, Some(eventfd), number);
                }
                self.unmask_new(index);
                self.engine.send_missed(self.function);
                Ok(())
            }
            BlockingCallOutcome::PartialKept(numbers) => {
                self.own.successor.partial_kept(numbers);
                Ok(())
            }
            BlockingCallOutcome::CaughtUp => {
                self.own.successor.arrived();
                Ok(())
            }
            // `finish_errand` handles the first two. Only vhost-user clients make the other calls.
            BlockingCallOutcome::MemorySampled(_)
            | BlockingCallOutcome::QueueEmptied
            | BlockingCallOutcome::RegionMapped(_)
            | BlockingCallOutcome::LogMapped(_)
            | BlockingCallOutcome::InflightChecked(_)
            | BlockingCallOutcome::RingEventfd { .. } => Err(Errno::EIO),
        }
    }

    /// Sets the eventfd of an interrupt vector, which is kept for the successor process under `number`, or removes the
    /// eventfd. Vectors that do not exist are ignored.
    fn set_eventfd(&mut self, index: u32, vector: u32, eventfd: Option<EventFd>, number: u64) {
        self.own.successor.eventfd(SavedEventfd { index, vector, number });
        self.engine.reach_mut(self.function).set_eventfd(index, vector, eventfd);
    }

    /// Unmasks the interrupt pin after its eventfd has changed.
    fn unmask_new(&mut self, index: u32) {
        if index == pci_irq::INTX {
            self.engine.mask_pin(self.function, false);
        }
    }

    /// Stores the error of a refused DMA window for the log. Returns the error number for the client.
    fn refuse(&mut self, error: MapDmaRegionError) -> Errno {
        let number = errno(error.errno());
        self.own.refused = Some(error);
        number
    }
}

impl ServedDevice<DeferredCloseFd> for VfioFunction<'_> {
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
        let size = self.engine.card().region(self.function, index);
        let flags = if size > 0 { region_flags::READ | region_flags::WRITE } else { 0 };
        let info = RegionInfo { size: size as u64, flags, ..RegionInfo::default() };
        if let Some(pages) = self.own.pages.as_ref().filter(|_| index == pci_region::BAR0) {
            return Some(RegionInfo { flags: flags | region_flags::MMAP, sparse: pages.areas, ..info });
        }
        Some(info)
    }

    fn region_fd(&mut self, index: u32) -> Option<DeferredCloseFd> {
        let pages = self.own.pages.as_mut().filter(|_| index == pci_region::BAR0)?;
        let fd = pages.give(self.engine.card_mut(), self.now).ok()?;
        Some(self.errands().keep(fd))
    }

    fn irq(&self, index: u32) -> Option<IrqInfo> {
        let count = self.engine.reach(self.function).vectors(index);
        let kind = match index {
            pci_irq::INTX => irq_flags::MASKABLE | irq_flags::AUTOMASKED,
            // Vectors get their eventfds one by one. With NORESIZE, QEMU would disable all before it enables another.
            pci_irq::MSIX => 0,
            _ => irq_flags::NORESIZE,
        };
        let flags = if count > 0 { irq_flags::EVENTFD | kind } else { 0 };
        (index < pci_irq::COUNT).then_some(IrqInfo { flags, count })
    }

    /// Reads the bytes in pieces while the function's account has credit.
    fn read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> usize {
        if !self.own.account.has_credit() {
            return 0;
        }
        self.forget_work();
        self.read_doorbells();
        let mut done = 0;
        while done < data.len() && self.own.account.has_credit() {
            let at = offset + done as u64;
            let piece = piece_at(at).min(data.len() - done);
            self.engine.card_mut().read(self.function, region, at, &mut data[done..done + piece], self.now);
            self.charge(WorkCost::of_accesses(piece));
            done += piece;
        }
        self.publish_registers();
        let place = FlightRecordKind::Read(RegisterLocation { region, offset });
        self.own.flight.access(self.now, place, &data[..done]);
        done
    }

    /// Writes the bytes in pieces while the function's account has credit.
    fn write(&mut self, region: u32, offset: u64, data: &[u8]) -> usize {
        if !self.own.account.has_credit() {
            return 0;
        }
        self.forget_work();
        self.read_doorbells();
        let mut done = 0;
        while done < data.len() && self.own.account.has_credit() {
            let at = offset + done as u64;
            let piece = piece_at(at).min(data.len() - done);
            let bytes = &data[done..done + piece];
            match region {
                pci_region::BAR0 => self.write_register(at, bytes),
                _ => self.engine.card_mut().write(self.function, region, at, bytes, self.now),
            }
            self.charge(WorkCost::of_accesses(piece));
            done += piece;
        }
        self.publish_registers();
        self.own.configuration_changed |= matches!(region, pci_region::BAR3 | pci_region::CONFIG);
        let place = FlightRecordKind::Write(RegisterLocation { region, offset });
        self.own.flight.access(self.now, place, &data[..done]);
        done
    }

    fn dma_map(&mut self, map: DmaWindow<DeferredCloseFd>) -> Result<RequestCompletionTiming, Errno> {
        self.own.account.charge(WorkCost::ERRAND);
        let DmaWindow { iova, size, readable, writable, file } = map;
        let permissions = DmaPermissions { read: readable, write: writable };
        let offset = file.as_ref().map(|file| file.offset);
        let window = SavedDmaWindow { iova, size, permissions, file: 0, offset: offset.unwrap_or(0) };
        match self.engine.reach_mut(self.function).memory_mut().admit(iova, size, permissions, offset) {
            Ok(region) => {
                let Some((region, file)) = region.zip(file) else {
                    self.charge_windows(iova, 0);
                    self.own.successor.mapped(&window, None);
                    return Ok(RequestCompletionTiming::Now);
                };
                self.own.errands.map(region, file.fd, window, self.own.successor.keeper(1));
                Ok(RequestCompletionTiming::Later)
            }
            Err(error) => Err(self.refuse(error)),
        }
    }

    /// Unmaps the highest windows that the function's account has credit for.
    fn dma_unmap(&mut self, iova: u64, size: u64) -> u64 {
        if !self.own.account.has_credit() {
            return size;
        }
        let memory = self.engine.reach(self.function).memory();
        let (_, behind) = memory.regions_from(iova, size);
        let count = self.own.account.credit().windows(behind);
        let rest = memory.without_highest(iova, size, count);
        let (iova, size) = (iova + rest, size - rest);
        if rest == 0 {
            self.own.account.charge(WorkCost::ERRAND);
        }
        self.charge_windows(iova, size);
        // The card moves frames on this thread only. So no DMA is in flight.
        self.engine.reach_mut(self.function).unmap(iova, size);
        self.own.successor.unmapped(iova, size);
        rest
    }

    fn dma_unmap_all(&mut self) {
        self.charge_windows(0, u64::MAX);
        self.engine.reach_mut(self.function).unmap_all();
        self.own.successor.unmapped_all();
    }

    fn set_irqs(&mut self, set: IrqChange<DeferredCloseFd>) -> Result<RequestCompletionTiming, Errno> {
        self.own.account.charge(WorkCost::ERRAND);
        match set {
            // Clients disable interrupt types that they never enabled, and types that do not exist.
            IrqChange::Disable { index } => {
                for vector in 0..self.engine.reach(self.function).vectors(index) {
                    self.set_eventfd(index, vector, None, 0);
                }
                self.unmask_new(index);
            }
            IrqChange::Assign { index, start, fds } => {
                let keeper = self.own.successor.keeper(fds.len());
                self.own.errands.assign(index, start, fds, keeper);
                return Ok(RequestCompletionTiming::Later);
            }
            IrqChange::Deassign { index, vectors } => {
                vectors.for_each(|vector| self.set_eventfd(index, vector, None, 0));
            }
            IrqChange::Trigger { index, vector } => {
                self.own.account.charge(WorkCost::INTERRUPT);
                self.engine.signal(self.function, index, vector);
            }
            // Only the pin can be masked. The session rejects other vectors.
            IrqChange::Mask { .. } => self.engine.mask_pin(self.function, true),
            IrqChange::Unmask { .. } => self.engine.mask_pin(self.function, false),
        }
        Ok(RequestCompletionTiming::Now)
    }

    fn reset(&mut self) -> Result<(), Errno> {
        self.read_doorbells();
        self.own.flight.event(self.now, FlightRecordKind::Said("reset by the client"), 0);
        self.forget_work();
        let done = self.reset_function();
        self.charge(WorkCost::ACCESS);
        if done { Ok(()) } else { Err(Errno::EIO) }
    }
}

/// Returns the bytes from an offset to the next multiple of [`PIECE`].
fn piece_at(offset: u64) -> usize {
    PIECE - offset as usize % PIECE
}

fn errno(number: i32) -> Errno {
    u32::try_from(number).map_or(Errno::EIO, Errno)
}
