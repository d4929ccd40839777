//! PCI bus of a running card. Each function reaches only the memory and eventfds that its VMM has shared. A PF that the
//! host drives has neither.

use super::access::{FunctionAccess, FunctionTable, index_of};
use super::error::PortEngineStartError;
use super::kick_reports::KickReports;
use super::ring_records::RingRecords;
use crate::config::file::CardFamily;
use host::confine::PreparedSandbox;
use host::dma::{DmaLimits, DmaTable, MappedLog};
use host::eventfd::{EventFd, EventFdNotifier};
use host::memory::MappingTableReservation;
use host::worker::BlockingWorker;
use i82576::config::pf;
use pcie::{Function, VfIndex};
use plane::PortSet;

/// Guest memory and interrupts that one function of the card reaches.
#[derive(Debug)]
pub(in crate::port) struct FunctionBus {
    access: FunctionAccess,
    /// Limit of the memory that the function's client may map, in bytes.
    memory: u64,
    /// Reservation of this function's part of the process-wide table of memory mappings.
    _share: MappingTableReservation,
    /// Worker thread that maps and unmaps guest memory, and closes file descriptors of the client.
    worker: BlockingWorker,
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
        let access = FunctionAccess::new(limits, counts, Some(worker.clone()));
        Self { access, memory, _share: share, worker }
    }

    /// Sets the records of the function's packed rings, which the previous host process may have left.
    pub(in crate::port) fn set_records(&mut self, records: RingRecords) {
        self.access.records = Some(records);
    }

    /// Returns the function's table of DMA windows.
    pub(in crate::port) fn memory(&self) -> &DmaTable {
        &self.access.memory
    }

    /// Returns the function's table of DMA windows, to add windows. [`Self::unmap`] removes them.
    pub(in crate::port) fn memory_mut(&mut self) -> &mut DmaTable {
        &mut self.access.memory
    }

    /// Unmaps the function's DMA windows in a range of `size` bytes from `iova` on. A range without a window is
    /// ignored.
    pub(in crate::port) fn unmap(&mut self, iova: u64, size: u64) {
        if let Ok(removed) = self.access.memory.unmap(iova, size)
            && !removed.is_light()
        {
            self.worker.discard(removed);
        }
    }

    /// Unmaps all DMA windows of the function.
    pub(in crate::port) fn unmap_all(&mut self) {
        let removed = self.access.memory.unmap_all();
        if !removed.is_light() {
            self.worker.discard(removed);
        }
    }

    /// Changes the log of the function's writes to guest memory. The worker thread drops a log that is removed.
    pub(in crate::port) fn change_log(&mut self, change: impl FnOnce(&mut DmaTable) -> Option<MappedLog>) {
        if let Some(removed) = change(&mut self.access.memory) {
            self.worker.discard(removed);
        }
    }

    /// Returns the reports of the kicks of the function's rings.
    pub(in crate::port) fn kicks_mut(&mut self) -> &mut KickReports {
        &mut self.access.kicks
    }

    /// Returns the function's worker thread, which may block on the client's memory and file descriptors.
    pub(in crate::port) fn worker(&self) -> &BlockingWorker {
        &self.worker
    }

    /// Returns the number of interrupt vectors of a type (INTx, MSI, MSI-X); 0 if the function lacks the type.
    pub(in crate::port) fn vectors(&self, index: u32) -> u32 {
        self.access.eventfds.get(index as usize).map_or(0, |eventfds| eventfds.len() as u32)
    }

    /// Sets or removes the eventfd of a function's interrupt vector. Vectors that do not exist are ignored.
    pub(in crate::port) fn set_eventfd(&mut self, index: u32, vector: u32, eventfd: Option<EventFd>) {
        let eventfds = self.access.eventfds.get_mut(index as usize);
        if let Some(place) = eventfds.and_then(|eventfds| eventfds.get_mut(vector as usize)) {
            *place = eventfd;
        }
    }

    /// Returns the eventfds of a function's interrupt vectors of a type, with their vectors.
    pub(in crate::port) fn eventfds(&self, index: u32) -> impl Iterator<Item = (u32, &EventFd)> {
        let eventfds = self.access.eventfds.get(index as usize).into_iter().flatten();
        (0..).zip(eventfds).filter_map(|(vector, eventfd)| Some((vector, eventfd.as_ref()?)))
    }

    /// Removes all eventfds of the function.
    pub(in crate::port) fn clear_eventfds(&mut self) {
        self.access.eventfds.iter_mut().for_each(|eventfds| eventfds.fill_with(|| None));
        self.forget_missed();
    }

    /// Discards the interrupts that MSI-X vectors without an eventfd have missed.
    pub(in crate::port) fn forget_missed(&mut self) {
        self.access.missed = 0;
    }

    /// Counts an interrupt as missed for each MSI-X vector without an eventfd: the previous host process may have had one to send.
    /// The vector then gets one with its eventfd, which at worst calls the driver for nothing.
    pub(in crate::port) fn assume_missed(&mut self) {
        self.access.assume_missed();
    }

    /// Returns the number of interrupts that the function has sent.
    pub(in crate::port) fn interrupts(&self) -> u64 {
        self.access.interrupts
    }

    /// Returns two flags of the function's interrupt pin: true if it is raised, and true if the client has masked it.
    pub(in crate::port) fn pin(&self) -> (bool, bool) {
        (self.access.pin_raised, self.access.pin_masked)
    }

    /// Restores the pin and the number of interrupts that the previous host process has left.
    pub(in crate::port) fn restore(&mut self, (raised, masked): (bool, bool), interrupts: u64) {
        (self.access.pin_raised, self.access.pin_masked) = (raised, masked);
        self.access.interrupts = interrupts;
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

impl AsRef<FunctionAccess> for FunctionBus {
    fn as_ref(&self) -> &FunctionAccess {
        &self.access
    }
}

impl AsMut<FunctionAccess> for FunctionBus {
    fn as_mut(&mut self) -> &mut FunctionAccess {
        &mut self.access
    }
}

/// Bus of a port's card: guest memory and interrupts of each function that the port offers.
pub(in crate::port) type GuestBus = FunctionTable<FunctionBus>;

impl GuestBus {
    /// Creates the bus of the PF and of VFs with these families, without clients. `memory` is the limit of mapped bytes
    /// of each client. A VF's family decides its number of interrupt vectors.
    pub(in crate::port) fn new(
        (port, families): (&str, &[CardFamily]),
        memory: u64,
        confined: &PreparedSandbox,
    ) -> Result<Self, PortEngineStartError> {
        let vfs = VfIndex::first(families.len()).map(VfIndex::function);
        let all: Vec<_> = [Function::Pf].into_iter().chain(vfs).collect();
        let resources = FunctionResources::take(&all, port, confined)?;
        let families = [CardFamily::default()].into_iter().chain(families.iter().copied());
        let functions = all.into_iter().zip(resources).zip(families);
        let functions = functions
            .map(|((function, resources), family)| FunctionBus::new(function, resources, (family, memory)))
            .collect();
        let notifier = EventFdNotifier::new();
        if !notifier.is_safe() {
            tracing::warn!(
                "Linux AIO is not available (a seccomp filter, or fs.aio-max-nr): a client can block its \
                 port through an eventfd; allow io_setup, io_submit and io_getevents"
            );
        }
        Ok(Self { functions, notifier, interrupted: PortSet::NONE })
    }

    /// Adds a VF of a family with its resources to the bus, after the VFs that the bus already has.
    pub(in crate::port) fn add_vf(&mut self, resources: FunctionResources, family: CardFamily) {
        let function = Function::Vf((self.functions.len() - 1) as u8);
        let memory = self.functions[0].memory;
        self.functions.push(FunctionBus::new(function, resources, (family, memory)));
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

    /// Signals every eventfd of a function, whether or not the card has an interrupt pending.
    pub(in crate::port) fn signal_all(&mut self, function: Function) {
        let Self { functions, notifier, .. } = self;
        let eventfds = functions[index_of(function)].access.eventfds.iter().flatten();
        eventfds.flatten().for_each(|eventfd| notifier.signal(eventfd));
    }

    /// Masks or unmasks a function's interrupt pin for its client. Unmasking a pin that is still raised signals its
    /// eventfd again.
    pub(in crate::port) fn mask_pin(&mut self, function: Function, masked: bool) {
        let reach = self.reach_mut(function);
        reach.access.pin_masked = masked;
        let raised = reach.access.pin_raised;
        self.move_pin(function, raised);
    }
}
