//! The bus of a live card: each function's memory and interrupts are what its VMM has handed over, and nothing
//! else can be reached in its name. A PF that the host drives has neither.

use super::PortError;
use super::errand::{Done, Errands};
use crate::config::file::Family;
use host::confine::Prepared;
use host::dma::{DmaLimits, DmaTable, MapRegionError};
use host::eventfd::{AdoptError, EventFd, Notifier};
use host::memory::MappingShare;
use host::poll::Waker;
use host::worker::Worker;
use i82576::config::pf;
use pcie::burst::{HEAD, Run};
use pcie::{Access, Bus, DmaFault, Function, Iova, Space, VfIndex};
use std::sync::mpsc;
use vfio_user::wire::pci_irq;

/// What one function reaches.
#[derive(Debug)]
pub(super) struct Reach {
    pub(super) memory: DmaTable,
    /// So many mappings are this function's, whatever other functions map.
    _share: MappingShare,
    /// Maps and unmaps.
    pub(super) errands: Errands,
    /// Why the last window was refused, for the log.
    pub(super) refused: Option<MapRegionError>,
    /// Why the last eventfd was refused, for the log.
    pub(super) refused_eventfd: Option<AdoptError>,
    /// The eventfds of its interrupt types, numbered as VFIO does: the pin, MSI, MSI-X.
    pub(super) eventfds: [Box<[Option<EventFd>]>; 3],
    /// The interrupt pin's level.
    pin_raised: bool,
    /// The pin has fired, or the client wants it held back: it stays silent until it is unmasked.
    pin_masked: bool,
    /// Interrupts sent.
    pub(super) interrupts: u64,
}

impl Reach {
    /// Whether the pin is raised, and whether it is masked.
    pub(super) fn pin(&self) -> (bool, bool) {
        (self.pin_raised, self.pin_masked)
    }

    /// The pin as another process has left it.
    pub(super) fn restore_pin(&mut self, (raised, masked): (bool, bool)) {
        (self.pin_raised, self.pin_masked) = (raised, masked);
    }
}

/// What a function takes of the process: a thread for its errands, and a share of the table of mappings. Taking it may last,
/// so no port does it.
#[derive(Debug)]
pub(super) struct Means {
    worker: Worker,
    share: MappingShare,
}

impl Means {
    /// For each of these functions of a port. Their threads give up the rights that `confined` names.
    pub(super) fn take(
        functions: &[Function],
        port: &str,
        confined: &Prepared,
    ) -> Result<Vec<Self>, PortError> {
        let names: Vec<_> = functions.iter().map(|function| Errands::thread(*function, port)).collect();
        let workers = Worker::start_all_confined(&names, confined)?;
        let with_share = |worker| {
            let share = MappingShare::reserve().ok_or(PortError::NoMappings)?;
            Ok(Self { worker, share })
        };
        workers.into_iter().map(with_share).collect()
    }
}

/// What the functions of a port have together.
#[derive(Debug)]
pub(super) struct Shared {
    family: Family,
    /// The limit of mapped bytes of each client.
    memory: u64,
    /// Where the outcome of an errand goes, and what it wakes.
    done: mpsc::Sender<Done>,
    waker: Waker,
    /// Has new clients kept, of all functions.
    clerk: Worker,
}

/// The bus: a [`Reach`] for each function that the port offers.
#[derive(Debug)]
pub(super) struct LiveBus {
    /// The PF's, then the VFs'.
    functions: Vec<Reach>,
    shared: Shared,
    notifier: Notifier,
}

impl Reach {
    /// A function without a client: no memory and no eventfds.
    fn new(function: Function, Means { worker, share }: Means, shared: &Shared) -> Self {
        let Shared { family, memory, done, waker, clerk } = shared;
        // The vectors of each interrupt type.
        let counts = match function {
            Function::Pf => [1, 1, pf::VECTORS.into()],
            Function::Vf(_) => [0, 0, family.vf_vectors()],
        };
        let limits = DmaLimits { mappings: share.mappings(), bytes: *memory, ..DmaLimits::default() };
        Self {
            memory: DmaTable::new(limits),
            _share: share,
            errands: Errands::new(function, (worker, clerk.clone()), done.clone(), waker.clone()),
            refused: None,
            refused_eventfd: None,
            eventfds: counts.map(|count| std::iter::repeat_with(|| None).take(count).collect()),
            pin_raised: false,
            pin_masked: false,
            interrupts: 0,
        }
    }
}

impl Drop for Reach {
    /// The end of a port does not wait for its clients' memory.
    fn drop(&mut self) {
        self.errands.unmap(self.memory.unmap_all());
    }
}

impl LiveBus {
    /// A bus of the PF and `vfs` VFs, without clients. `memory` is the limit of mapped bytes of each client. The outcome of
    /// an errand goes to `done`, and wakes `waker`. A VF has as many vectors as the family gives it.
    pub(super) fn new(
        (port, vfs): (&str, usize),
        memory: u64,
        done: &mpsc::Sender<Done>,
        waker: &Waker,
        confined: &Prepared,
        family: Family,
    ) -> Result<Self, PortError> {
        let all: Vec<_> =
            [Function::Pf].into_iter().chain(VfIndex::first(vfs).map(VfIndex::function)).collect();
        let means = Means::take(&all, port, confined)?;
        let clerk = Worker::start_confined(&format!("keep {port}"), confined)?;
        let shared = Shared { family, memory, done: done.clone(), waker: waker.clone(), clerk };
        let functions = all.into_iter().zip(means);
        let functions = functions.map(|(function, means)| Reach::new(function, means, &shared)).collect();
        let notifier = Notifier::new();
        if !notifier.is_safe() {
            tracing::warn!(
                "Linux AIO is not to be had (a seccomp filter, or fs.aio-max-nr): a client that races for its own \
                 eventfd can hold up its port; allow io_setup, io_submit and io_getevents"
            );
        }
        Ok(Self { functions, shared, notifier })
    }

    /// One VF more.
    pub(super) fn add_vf(&mut self, means: Means) {
        let function = Function::Vf((self.functions.len() - 1) as u8);
        self.functions.push(Reach::new(function, means, &self.shared));
    }

    /// The last VF is gone, with what it took of the process. Nothing is sent in its name any more.
    pub(super) fn remove_vf(&mut self) {
        if self.functions.len() > 1 {
            self.functions.pop();
        }
    }

    /// What a function that the port offers reaches.
    pub(super) fn reach(&self, function: Function) -> &Reach {
        &self.functions[place(function)]
    }

    /// What a function that the port offers reaches.
    pub(super) fn reach_mut(&mut self, function: Function) -> &mut Reach {
        &mut self.functions[place(function)]
    }

    /// Signals the eventfd of a vector of an interrupt type, if there is one: whether there is.
    pub(super) fn signal(&mut self, function: Function, index: u32, vector: u32) -> bool {
        let eventfds =
            self.functions.get(place(function)).and_then(|reach| reach.eventfds.get(index as usize));
        let Some(Some(eventfd)) = eventfds.and_then(|eventfds| eventfds.get(vector as usize)) else {
            return false;
        };
        self.notifier.signal(eventfd);
        true
    }

    /// Signals every eventfd of a function, whatever the card has to say.
    pub(super) fn signal_all(&mut self, function: Function) {
        let Self { functions, notifier, .. } = self;
        let eventfds = functions[place(function)].eventfds.iter().flatten();
        eventfds.flatten().for_each(|eventfd| notifier.signal(eventfd));
    }

    /// The client holds a function's pin back, or lets it through again: it then hears of a pin that is still
    /// raised.
    pub(super) fn mask_pin(&mut self, function: Function, masked: bool) {
        let reach = self.reach_mut(function);
        reach.pin_masked = masked;
        let raised = reach.pin_raised;
        self.move_pin(function, raised);
    }

    /// The pin is a level, its eventfd an edge: it is signalled once, and again after the client has unmasked it. Only the PF
    /// has one.
    fn move_pin(&mut self, function: Function, raised: bool) {
        let Some(reach) = self.functions.get_mut(place(function)) else { return };
        reach.pin_raised = raised;
        if raised && !reach.pin_masked && self.interrupt(function, pci_irq::INTX, 0) {
            self.reach_mut(function).pin_masked = true;
        }
    }

    /// Signals a vector as an interrupt, which is counted: whether there is anybody to hear it.
    fn interrupt(&mut self, function: Function, index: u32, vector: u16) -> bool {
        let signalled = self.signal(function, index, vector.into());
        if signalled {
            self.reach_mut(function).interrupts += 1;
        }
        signalled
    }
}

/// Where a function is among [`LiveBus::functions`], if the port offers it.
const fn place(function: Function) -> usize {
    match function {
        Function::Pf => 0,
        Function::Vf(n) => 1 + n as usize,
    }
}

impl LiveBus {
    /// The memory of a function; a VF that is not offered reaches none.
    fn memory(&self, function: Function, iova: Iova) -> Result<&DmaTable, DmaFault> {
        self.functions.get(place(function)).map(|reach| &reach.memory).ok_or(DmaFault { function, iova })
    }
}

impl Bus for LiveBus {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        let read = self.memory(function, iova)?.read(iova, into);
        read.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        let written = self.memory(function, iova)?.write(iova, from);
        written.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn read_descriptors(&mut self, ring: Space<'_>, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        let Space { function, hint } = ring;
        let read = self.memory(function, iova)?.read_by(&mut hint.0, iova, into);
        read.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn write_descriptors(
        &mut self,
        ring: Space<'_>,
        iova: Iova,
        from: &[u8],
        size: usize,
    ) -> Result<(), DmaFault> {
        let Space { function, hint } = ring;
        let written = self.memory(function, iova)?.write_descriptors_by(&mut hint.0, iova, from, size);
        written.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn gather(
        &mut self,
        from: Space<'_>,
        sources: &[Iova],
        lengths: &[u32],
        heads: &mut [[u8; HEAD]],
    ) -> usize {
        let memory = self.memory(from.function, 0);
        memory.map_or(0, |memory| memory.gather(&mut from.hint.0, sources, lengths, heads))
    }

    fn carry(&mut self, from: Space<'_>, to: Space<'_>, run: Run<'_>) -> usize {
        let (Ok(source), Ok(target)) = (self.memory(from.function, 0), self.memory(to.function, 0)) else {
            return 0;
        };
        let Run { heads, sources, lengths, targets, sums } = run;
        let run = host::dma::Run { heads, sources, lengths, targets, sums };
        source.carry(&mut from.hint.0, target, &mut to.hint.0, run)
    }

    #[inline]
    fn prefetch(&mut self, function: Function, range: (Iova, usize), access: Access) {
        if let Some(reach) = self.functions.get(place(function)) {
            reach.memory.prefetch(range, access == Access::Write);
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
