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
use i82576::ids::MAX_VFS;
use pcie::{Access, Bus, DmaFault, Function, Iova};
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

/// The bus: a [`Reach`] a function.
#[derive(Debug)]
pub(super) struct LiveBus {
    /// The PF's, then the VFs'.
    functions: Box<[Reach]>,
    notifier: Notifier,
}

impl Reach {
    /// A function without a client: no memory and no eventfds. `counts` are the vectors of each interrupt type, `memory`
    /// is the limit of mapped bytes.
    fn new(counts: [usize; 3], memory: u64, errands: Errands) -> Result<Self, PortError> {
        let share = MappingShare::reserve().ok_or(PortError::NoMappings)?;
        let limits = DmaLimits { mappings: share.mappings(), bytes: memory, ..DmaLimits::default() };
        Ok(Self {
            memory: DmaTable::new(limits),
            _share: share,
            errands,
            refused: None,
            refused_eventfd: None,
            eventfds: counts.map(|count| std::iter::repeat_with(|| None).take(count).collect()),
            pin_raised: false,
            pin_masked: false,
            interrupts: 0,
        })
    }
}

impl Drop for Reach {
    /// The end of a port does not wait for its clients' memory.
    fn drop(&mut self) {
        self.errands.unmap(self.memory.unmap_all());
    }
}

impl LiveBus {
    /// A bus of functions without clients. `memory` is the limit of mapped bytes of each client. The outcome of an errand
    /// goes to `done`, and wakes `waker`. A VF has as many vectors as the family gives it.
    pub(super) fn new(
        port: &str,
        memory: u64,
        done: &mpsc::Sender<Done>,
        waker: &Waker,
        confined: &Prepared,
        family: Family,
    ) -> Result<Self, PortError> {
        let clerk = format!("keep {port}");
        let of_pf = (Function::Pf, [1, 1, pf::VECTORS.into()]);
        let of_vfs = (0..MAX_VFS as u8).map(|vf| (Function::Vf(vf), [0, 0, family.vf_vectors()]));
        let all: Vec<_> = [of_pf].into_iter().chain(of_vfs).collect();
        let names = all.iter().map(|(function, _)| Errands::thread(*function, port)).chain([clerk]);
        let mut workers = Worker::start_all_confined(&names.collect::<Vec<_>>(), confined)?;
        let clerk = workers.split_off(all.len()).remove(0);
        let mut functions = Vec::with_capacity(all.len());
        for ((function, counts), worker) in all.into_iter().zip(workers) {
            let errands = Errands::new(function, (worker, clerk.clone()), done.clone(), waker.clone());
            functions.push(Reach::new(counts, memory, errands)?);
        }
        let notifier = Notifier::new();
        if !notifier.is_safe() {
            tracing::warn!(
                "Linux AIO is not to be had (a seccomp filter, or fs.aio-max-nr): a client that races for its own \
                 eventfd can hold up its port; allow io_setup, io_submit and io_getevents"
            );
        }
        Ok(Self { functions: functions.into(), notifier })
    }

    /// What a function reaches.
    pub(super) fn reach(&self, function: Function) -> &Reach {
        &self.functions[place(function)]
    }

    /// What a function reaches.
    pub(super) fn reach_mut(&mut self, function: Function) -> &mut Reach {
        &mut self.functions[place(function)]
    }

    /// Signals the eventfd of a vector of an interrupt type, if there is one: whether there is.
    pub(super) fn signal(&mut self, function: Function, index: u32, vector: u32) -> bool {
        let eventfds = self.functions[place(function)].eventfds.get(index as usize);
        let Some(Some(eventfd)) = eventfds.and_then(|eventfds| eventfds.get(vector as usize)) else {
            return false;
        };
        self.notifier.signal(eventfd);
        true
    }

    /// Signals every eventfd of a function, whatever the card has to say.
    pub(super) fn signal_all(&mut self, function: Function) {
        let Self { functions, notifier } = self;
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

    /// The pin is a level, its eventfd an edge: it is signalled once, and again after the client has unmasked it.
    fn move_pin(&mut self, function: Function, raised: bool) {
        let reach = self.reach_mut(function);
        reach.pin_raised = raised;
        if raised && !reach.pin_masked && self.interrupt(function, pci_irq::INTX, 0) {
            self.reach_mut(function).pin_masked = true;
        }
    }

    /// Signals a vector as an interrupt, which is counted: whether there is anybody to hear it.
    fn interrupt(&mut self, function: Function, index: u32, vector: u16) -> bool {
        let signalled = self.signal(function, index, vector.into());
        self.reach_mut(function).interrupts += u64::from(signalled);
        signalled
    }
}

/// Where a function is among [`LiveBus::functions`]. There are no functions beyond the last VF.
fn place(function: Function) -> usize {
    match function {
        Function::Pf => 0,
        Function::Vf(n) => 1 + usize::from(n) % MAX_VFS,
    }
}

impl Bus for LiveBus {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        let read = self.reach(function).memory.read(iova, into);
        read.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        let written = self.reach(function).memory.write(iova, from);
        written.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn dma_write_descriptors(
        &mut self,
        function: Function,
        iova: Iova,
        from: &[u8],
        size: usize,
    ) -> Result<(), DmaFault> {
        let written = self.reach(function).memory.write_descriptors(iova, from, size);
        written.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    #[inline]
    fn prefetch(&mut self, function: Function, iova: Iova, access: Access) {
        self.reach(function).memory.prefetch(iova, access == Access::Write);
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
