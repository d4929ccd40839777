//! PCI bus of a running card. Each function reaches only the memory and eventfds that its VMM has shared. A PF that the
//! host drives has neither.

use super::error::PortEngineStartError;
use crate::config::file::CardFamily;
use host::confine::PreparedSandbox;
use host::dma::{DmaLimits, DmaTable, MappedLog};
use host::eventfd::{EventFd, EventFdNotifier};
use host::memory::MappingTableReservation;
use host::worker::BlockingWorker;
use i82576::config::pf;
use pcie::burst::{FrameCopyBatch, HEAD, HEADERS, HeadCompleter, SegmentPayloads};
use pcie::{AnnouncedAccess, Bus, DmaFault, Function, HintedMemory, Iova, VfIndex};
use vfio_user::wire::pci_irq;

/// Guest memory and interrupts that one function of the card reaches.
#[derive(Debug)]
pub(in crate::port) struct FunctionBus {
    memory: DmaTable,
    /// Reservation of this function's part of the process-wide table of memory mappings.
    _share: MappingTableReservation,
    /// Worker thread that maps and unmaps guest memory, and closes file descriptors of the client.
    worker: BlockingWorker,
    /// Eventfds of the function by interrupt type and vector. VFIO numbers the types: the pin, MSI, MSI-X.
    eventfds: [Box<[Option<EventFd>]>; 3],
    /// True while the function's interrupt pin is raised.
    pin_raised: bool,
    /// True once the pin has fired, or the client has masked it. Until the pin is unmasked, its eventfd is not
    /// signalled.
    pin_masked: bool,
    /// Number of interrupts sent to the function's client.
    interrupts: u64,
}

impl FunctionBus {
    /// Creates the bus of a function without a client: no memory and no eventfds.
    fn new(
        function: Function,
        FunctionResources { worker, share }: FunctionResources,
        (family, memory): (CardFamily, u64),
    ) -> Self {
        // Vectors of each interrupt type.
        let counts = match function {
            Function::Pf => [1, 1, pf::VECTORS.into()],
            Function::Vf(_) => [0, 0, family.vf_vectors()],
        };
        let limits = DmaLimits { mappings: share.mappings(), bytes: memory, ..DmaLimits::default() };
        Self {
            memory: DmaTable::new(limits),
            _share: share,
            worker,
            eventfds: counts.map(|count| std::iter::repeat_with(|| None).take(count).collect()),
            pin_raised: false,
            pin_masked: false,
            interrupts: 0,
        }
    }

    /// Returns the function's table of DMA windows.
    pub(in crate::port) fn memory(&self) -> &DmaTable {
        &self.memory
    }

    /// Returns the function's table of DMA windows, to add windows. [`Self::unmap`] removes them.
    pub(in crate::port) fn memory_mut(&mut self) -> &mut DmaTable {
        &mut self.memory
    }

    /// Unmaps the function's DMA windows in a range of `size` bytes from `iova` on. A range without a window is
    /// ignored.
    pub(in crate::port) fn unmap(&mut self, iova: u64, size: u64) {
        if let Ok(removed) = self.memory.unmap(iova, size)
            && !removed.is_light()
        {
            self.worker.discard(removed);
        }
    }

    /// Unmaps all DMA windows of the function.
    pub(in crate::port) fn unmap_all(&mut self) {
        let removed = self.memory.unmap_all();
        if !removed.is_light() {
            self.worker.discard(removed);
        }
    }

    /// Changes the log of the function's writes to guest memory. The worker thread drops a log that is removed.
    pub(in crate::port) fn change_log(&mut self, change: impl FnOnce(&mut DmaTable) -> Option<MappedLog>) {
        if let Some(removed) = change(&mut self.memory) {
            self.worker.discard(removed);
        }
    }

    /// Returns the function's worker thread, which may block on the client's memory and file descriptors.
    pub(in crate::port) fn worker(&self) -> &BlockingWorker {
        &self.worker
    }

    /// Returns the number of interrupt vectors of a type (INTx, MSI, MSI-X); 0 if the function lacks the type.
    pub(in crate::port) fn vectors(&self, index: u32) -> u32 {
        self.eventfds.get(index as usize).map_or(0, |eventfds| eventfds.len() as u32)
    }

    /// Sets or removes the eventfd of a function's interrupt vector. Vectors that do not exist are ignored.
    pub(in crate::port) fn set_eventfd(&mut self, index: u32, vector: u32, eventfd: Option<EventFd>) {
        let eventfds = self.eventfds.get_mut(index as usize);
        if let Some(place) = eventfds.and_then(|eventfds| eventfds.get_mut(vector as usize)) {
            *place = eventfd;
        }
    }

    /// Removes all eventfds of the function.
    pub(in crate::port) fn clear_eventfds(&mut self) {
        self.eventfds.iter_mut().for_each(|eventfds| eventfds.fill_with(|| None));
    }

    /// Returns the number of interrupts that the function has sent.
    pub(in crate::port) fn interrupts(&self) -> u64 {
        self.interrupts
    }

    /// Returns two flags of the function's interrupt pin: true if it is raised, and true if the client has masked it.
    pub(in crate::port) fn pin(&self) -> (bool, bool) {
        (self.pin_raised, self.pin_masked)
    }

    /// Restores the pin and the number of interrupts that the previous host process has left.
    pub(in crate::port) fn restore(&mut self, (raised, masked): (bool, bool), interrupts: u64) {
        (self.pin_raised, self.pin_masked) = (raised, masked);
        self.interrupts = interrupts;
    }
}

impl Drop for FunctionBus {
    /// Unmaps the function's guest memory on the worker thread, since unmapping on the port's thread may block.
    fn drop(&mut self) {
        self.unmap_all();
    }
}

/// Resources of one function in this process: a worker thread and a part of the table of memory mappings. Reserving
/// them may block, so no port's thread does it.
#[derive(Debug)]
pub(in crate::port) struct FunctionResources {
    worker: BlockingWorker,
    share: MappingTableReservation,
}

impl FunctionResources {
    /// Reserves the resources of these functions of a port. Their worker threads drop the privileges that `confined`
    /// names.
    pub(in crate::port) fn take(
        functions: &[Function],
        port: &str,
        confined: &PreparedSandbox,
    ) -> Result<Vec<Self>, PortEngineStartError> {
        let names: Vec<_> = functions.iter().map(|function| thread(*function, port)).collect();
        let workers = BlockingWorker::start_all_confined(&names, confined)?;
        let with_share = |worker| {
            let share = MappingTableReservation::reserve().ok_or(PortEngineStartError::NoMappings)?;
            Ok(Self { worker, share })
        };
        workers.into_iter().map(with_share).collect()
    }
}

/// Returns the name of a function's worker thread.
fn thread(function: Function, port: &str) -> String {
    match function {
        Function::Pf => format!("mem {port}"),
        Function::Vf(n) => format!("mem {n} {port}"),
    }
}

/// Bus of a port's card: guest memory and interrupts of each function that the port offers.
#[derive(Debug)]
pub(in crate::port) struct GuestBus {
    /// Memory and interrupts of the PF, then those of the VFs.
    functions: Vec<FunctionBus>,
    /// Family of the card, and the limit of mapped bytes of each client.
    limits: (CardFamily, u64),
    notifier: EventFdNotifier,
}

impl GuestBus {
    /// Creates the bus of the PF and `vfs` VFs, without clients. `memory` is the limit of mapped bytes of each client.
    /// The family decides the number of interrupt vectors of a VF.
    pub(in crate::port) fn new(
        (port, vfs): (&str, usize),
        memory: u64,
        confined: &PreparedSandbox,
        family: CardFamily,
    ) -> Result<Self, PortEngineStartError> {
        let all: Vec<_> =
            [Function::Pf].into_iter().chain(VfIndex::first(vfs).map(VfIndex::function)).collect();
        let resources = FunctionResources::take(&all, port, confined)?;
        let limits = (family, memory);
        let functions = all.into_iter().zip(resources);
        let functions =
            functions.map(|(function, resources)| FunctionBus::new(function, resources, limits)).collect();
        let notifier = EventFdNotifier::new();
        if !notifier.is_safe() {
            tracing::warn!(
                "Linux AIO is not available (a seccomp filter, or fs.aio-max-nr): a client can block its \
                 port through an eventfd; allow io_setup, io_submit and io_getevents"
            );
        }
        Ok(Self { functions, limits, notifier })
    }

    /// Adds a VF with its resources to the bus, after the VFs that the bus already has.
    pub(in crate::port) fn add_vf(&mut self, resources: FunctionResources) {
        let function = Function::Vf((self.functions.len() - 1) as u8);
        self.functions.push(FunctionBus::new(function, resources, self.limits));
    }

    /// Removes the last VF with its resources. No interrupt is sent for the VF any more.
    pub(in crate::port) fn remove_vf(&mut self) {
        if self.functions.len() > 1 {
            self.functions.pop();
        }
    }

    /// Returns the memory and interrupts of a function that the port offers.
    pub(in crate::port) fn reach(&self, function: Function) -> &FunctionBus {
        &self.functions[index_of(function)]
    }

    /// Returns the memory and interrupts of a function that the port offers, to change them.
    pub(in crate::port) fn reach_mut(&mut self, function: Function) -> &mut FunctionBus {
        &mut self.functions[index_of(function)]
    }

    /// Signals the eventfd of a function's interrupt vector. Returns `false` if the vector has no eventfd.
    pub(in crate::port) fn signal(&mut self, function: Function, index: u32, vector: u32) -> bool {
        let eventfds =
            self.functions.get(index_of(function)).and_then(|reach| reach.eventfds.get(index as usize));
        let Some(Some(eventfd)) = eventfds.and_then(|eventfds| eventfds.get(vector as usize)) else {
            return false;
        };
        self.notifier.signal(eventfd);
        true
    }

    /// Signals every eventfd of a function, whether or not the card has an interrupt pending.
    pub(in crate::port) fn signal_all(&mut self, function: Function) {
        let Self { functions, notifier, .. } = self;
        let eventfds = functions[index_of(function)].eventfds.iter().flatten();
        eventfds.flatten().for_each(|eventfd| notifier.signal(eventfd));
    }

    /// Masks or unmasks a function's interrupt pin for its client. Unmasking a pin that is still raised signals its
    /// eventfd again.
    pub(in crate::port) fn mask_pin(&mut self, function: Function, masked: bool) {
        let reach = self.reach_mut(function);
        reach.pin_masked = masked;
        let raised = reach.pin_raised;
        self.move_pin(function, raised);
    }

    /// Raises or lowers a function's interrupt pin. The pin is a level and its eventfd an edge: the eventfd is
    /// signalled once, and again after the client has unmasked the pin. Only the PF has a pin.
    fn move_pin(&mut self, function: Function, raised: bool) {
        let Some(reach) = self.functions.get_mut(index_of(function)) else { return };
        reach.pin_raised = raised;
        if raised && !reach.pin_masked && self.interrupt(function, pci_irq::INTX, 0) {
            self.reach_mut(function).pin_masked = true;
        }
    }

    /// Sends an interrupt of the card: signals the eventfd of its vector, and counts it. Returns `false` if the vector
    /// has no eventfd.
    fn interrupt(&mut self, function: Function, index: u32, vector: u16) -> bool {
        let signalled = self.signal(function, index, vector.into());
        if signalled {
            self.reach_mut(function).interrupts += 1;
        }
        signalled
    }
}

/// Returns the index of a function in [`GuestBus::functions`], if the port offers it.
const fn index_of(function: Function) -> usize {
    match function {
        Function::Pf => 0,
        Function::Vf(n) => 1 + n as usize,
    }
}

impl GuestBus {
    /// Returns the guest memory for a DMA access of a function. A function that the port does not offer has none.
    fn memory(&self, function: Function, iova: Iova) -> Result<&DmaTable, DmaFault> {
        self.functions.get(index_of(function)).map(|reach| &reach.memory).ok_or(DmaFault { function, iova })
    }
}

impl Bus for GuestBus {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        let read = self.memory(function, iova)?.read(iova, into);
        read.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        let written = self.memory(function, iova)?.write(iova, from);
        written.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn read_descriptors(
        &mut self,
        ring: HintedMemory<'_>,
        iova: Iova,
        into: &mut [u8],
    ) -> Result<(), DmaFault> {
        let HintedMemory { function, hint } = ring;
        let read = self.memory(function, iova)?.read_by(&mut hint.0, iova, into);
        read.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn write_descriptors(
        &mut self,
        ring: HintedMemory<'_>,
        iova: Iova,
        from: &[u8],
        size: usize,
    ) -> Result<(), DmaFault> {
        let HintedMemory { function, hint } = ring;
        let written = self.memory(function, iova)?.write_descriptors_by(&mut hint.0, iova, from, size);
        written.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn gather(
        &mut self,
        from: HintedMemory<'_>,
        sources: &[Iova],
        lengths: &[u32],
        heads: &mut [[u8; HEAD]],
    ) -> usize {
        let memory = self.memory(from.function, 0);
        memory.map_or(0, |memory| memory.gather(&mut from.hint.0, sources, lengths, heads))
    }

    fn carry(
        &mut self,
        from: HintedMemory<'_>,
        to: HintedMemory<'_>,
        run: FrameCopyBatch<'_>,
        complete: Option<&mut HeadCompleter<'_>>,
    ) -> usize {
        let (Ok(source), Ok(target)) = (self.memory(from.function, 0), self.memory(to.function, 0)) else {
            return 0;
        };
        let FrameCopyBatch { heads, sources, lengths, targets, sums } = run;
        let run = host::dma::FrameCopyList { heads, sources, lengths, targets, sums };
        source.carry(&mut from.hint.0, (target, &mut to.hint.0), run, complete)
    }

    fn copy(&mut self, from: HintedMemory<'_>, to: HintedMemory<'_>, payloads: SegmentPayloads<'_>) -> usize {
        let (Ok(source), Ok(target)) = (self.memory(from.function, 0), self.memory(to.function, 0)) else {
            return 0;
        };
        let SegmentPayloads { sources, lengths, targets, sums } = payloads;
        let payloads = host::dma::PayloadCopyList { sources, lengths, targets, sums };
        source.copy(&mut from.hint.0, target, &mut to.hint.0, payloads)
    }

    fn scatter(
        &mut self,
        to: HintedMemory<'_>,
        headers: &[[u8; HEADERS]],
        length: usize,
        targets: &[Iova],
    ) -> usize {
        let memory = self.memory(to.function, 0);
        memory.map_or(0, |memory| memory.scatter(&mut to.hint.0, headers, length, targets))
    }

    #[inline]
    fn prefetch(&mut self, function: Function, range: (Iova, usize), access: AnnouncedAccess) {
        if let Some(reach) = self.functions.get(index_of(function)) {
            reach.memory.prefetch(range, access == AnnouncedAccess::Write);
        }
    }

    fn msix(&mut self, function: Function, vector: u16) {
        self.interrupt(function, pci_irq::MSIX, vector);
    }

    fn msi(&mut self, function: Function) {
        self.interrupt(function, pci_irq::MSI, 0);
    }

    fn intx(&mut self, function: Function, raised: bool) {
        self.move_pin(function, raised);
    }
}
