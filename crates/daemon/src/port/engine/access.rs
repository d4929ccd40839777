//! Memory and interrupts that the frame path reaches in the name of each function. Each function reaches only the memory
//! and eventfds that its VMM has shared.

use super::kick_reports::KickReports;
use super::ring_records::RingRecords;
use crate::port::moments::pass_moment;
use host::dma::{DmaLimits, DmaTable};
use host::eventfd::{EventFd, EventFdNotifier};
use host::worker::BlockingWorker;
use pcie::burst::{FrameCopyBatch, FramePlaces, HEAD, HEADERS, HeadCompleter, SegmentPayloads};
use pcie::{AnnouncedAccess, Bus, DmaFault, Function, HintedMemory, Iova};
use plane::shares::FrameShares;
use plane::{PortIndex, PortSet};
use units::WorkCost;
use vfio_user::wire::pci_irq;
use virtio_nic::Nic;

/// Guest memory and interrupts of one function.
#[derive(Debug)]
pub(in crate::port) struct FunctionAccess {
    pub(super) memory: DmaTable,
    /// Eventfds of the function by interrupt type and vector. VFIO numbers the types: the pin, MSI, MSI-X.
    pub(super) eventfds: [Box<[Option<EventFd>]>; 3],
    /// True while the function's interrupt pin is raised.
    pub(super) pin_raised: bool,
    /// True once the pin has fired, or the client has masked it. Until the pin is unmasked, its eventfd is not
    /// signalled.
    pub(super) pin_masked: bool,
    /// MSI-X vectors that had no eventfd when the card sent an interrupt, a bit each. The counterpart of the pending bits of a
    /// function whose vectors are masked: the card sends no second interrupt by itself.
    pub(super) missed: u64,
    /// Number of interrupts sent to the function's client.
    pub(super) interrupts: u64,
    /// Number of sent MSI-X interrupts that the function has not been charged for.
    pub(super) uncharged_interrupts: u32,
    /// Records of the function's packed rings.
    pub(super) records: Option<RingRecords>,
    /// Reports of the kicks of the function's rings.
    pub(super) kicks: KickReports,
    /// Worker thread that unmaps the memory; none for a function that reaches nothing.
    unmapper: Option<BlockingWorker>,
}

impl FunctionAccess {
    /// Creates the access of a function without memory and eventfds, for these numbers of vectors of each interrupt type.
    /// `unmapper` is the function's worker thread.
    pub(super) fn new(limits: DmaLimits, vectors: [usize; 3], unmapper: Option<BlockingWorker>) -> Self {
        Self {
            memory: DmaTable::new(limits),
            eventfds: vectors.map(|count| std::iter::repeat_with(|| None).take(count).collect()),
            pin_raised: false,
            pin_masked: false,
            missed: 0,
            interrupts: 0,
            uncharged_interrupts: 0,
            records: None,
            kicks: KickReports::default(),
            unmapper,
        }
    }

    /// Counts an interrupt as missed for each MSI-X vector without an eventfd.
    pub(super) fn assume_missed(&mut self) {
        let eventfds = &self.eventfds[pci_irq::MSIX as usize];
        let without = (0..).zip(eventfds).filter(|(_, eventfd)| eventfd.is_none());
        self.missed = without.fold(0, |missed, (vector, _)| missed | vector_bit(vector));
    }

    /// Creates the access of a function that reaches nothing.
    pub(super) fn none() -> Self {
        Self::new(DmaLimits::default(), [0; 3], None)
    }
}

impl Drop for FunctionAccess {
    /// Unmaps the function's memory on the worker thread, since unmapping may block. The access may be that of a part of the
    /// card whose worker has failed.
    fn drop(&mut self) {
        if let Some(unmapper) = &self.unmapper {
            unmapper.discard(std::mem::take(&mut self.memory));
        }
    }
}

impl AsRef<Self> for FunctionAccess {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsMut<Self> for FunctionAccess {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// Bus of a card or of a part of a card: the access of each function.
#[derive(Debug)]
pub(in crate::port) struct FunctionTable<F> {
    /// Access of the PF, then of the VFs.
    pub(super) functions: Vec<F>,
    pub(super) notifier: EventFdNotifier,
    /// VFs with uncharged interrupts. May include VFs without such interrupts.
    pub(super) interrupted: PortSet,
}

/// Returns the index of a function in [`FunctionTable::functions`], if the port offers it.
pub(super) const fn index_of(function: Function) -> usize {
    match function {
        Function::Pf => 0,
        Function::Vf(n) => 1 + n as usize,
    }
}

/// Returns the bit of an MSI-X vector in [`FunctionAccess::missed`]. No function has more than 64 vectors.
const fn vector_bit(vector: u16) -> u64 {
    if vector < 64 { 1 << vector } else { 0 }
}

impl<F: AsRef<FunctionAccess> + AsMut<FunctionAccess>> FunctionTable<F> {
    /// Returns the access of a function, if the table has the function.
    pub(super) fn access_mut(&mut self, function: Function) -> Option<&mut FunctionAccess> {
        self.functions.get_mut(index_of(function)).map(AsMut::as_mut)
    }

    /// Has the card look at a ring of a VF after a report of its kicks. A report that repeats an earlier one counts as no kick.
    pub(in crate::port) fn note_kick(&mut self, nic: &mut Nic, vf: u8, ring: u32) {
        let access = self.access_mut(Function::Vf(vf));
        if access.is_some_and(|access| access.kicks.is_kick(ring)) {
            nic.kick(vf, ring);
        } else {
            nic.make_ready(vf, ring);
        }
    }

    /// Signals the eventfd of a function's interrupt vector. Returns `false` if the vector has no eventfd.
    pub(in crate::port) fn signal(&mut self, function: Function, index: u32, vector: u32) -> bool {
        let Self { functions, notifier, .. } = self;
        let eventfds =
            functions.get(index_of(function)).and_then(|access| access.as_ref().eventfds.get(index as usize));
        let Some(Some(eventfd)) = eventfds.and_then(|eventfds| eventfds.get(vector as usize)) else {
            return false;
        };
        pass_moment();
        notifier.signal(eventfd);
        true
    }

    /// Raises or lowers a function's interrupt pin. The pin is a level and its eventfd an edge: the eventfd is
    /// signalled once, and again after the client has unmasked the pin. Only the PF has a pin.
    pub(super) fn move_pin(&mut self, function: Function, raised: bool) {
        let Some(access) = self.access_mut(function) else { return };
        access.pin_raised = raised;
        if raised
            && !access.pin_masked
            && self.interrupt(function, pci_irq::INTX, 0)
            && let Some(access) = self.access_mut(function)
        {
            access.pin_masked = true;
        }
    }

    /// Sends an interrupt of the card: signals the eventfd of its vector, and counts it. Returns `false` if the vector
    /// has no eventfd.
    fn interrupt(&mut self, function: Function, index: u32, vector: u16) -> bool {
        let signalled = self.signal(function, index, vector.into());
        if signalled && let Some(access) = self.access_mut(function) {
            access.interrupts += 1;
        }
        signalled
    }

    /// Sends an MSI-X interrupt of the card, and records it for the VF's charge. The PF has no account of frames, and pays nothing.
    /// A vector without an eventfd gets the interrupt later, by [`Self::send_missed`].
    fn send_msix(&mut self, function: Function, vector: u16) {
        let signalled = self.interrupt(function, pci_irq::MSIX, vector);
        let Some(access) = self.access_mut(function) else { return };
        if !signalled {
            access.missed |= vector_bit(vector);
        } else if let Some(vf) = function.vf() {
            access.uncharged_interrupts = access.uncharged_interrupts.saturating_add(1);
            self.interrupted |= PortIndex::of_field(vf.get().into()).only();
        }
    }

    /// Sends one interrupt to each MSI-X vector of a function that has missed interrupts and has an eventfd now.
    pub(super) fn send_missed(&mut self, function: Function) {
        let Some(access) = self.access_mut(function) else { return };
        let mut missed = std::mem::take(&mut access.missed);
        while missed != 0 {
            self.send_msix(function, missed.trailing_zeros() as u16);
            missed &= missed - 1;
        }
    }

    /// Charges VFs for the interrupts that the card has sent since the last call. The card calls it once a round.
    pub(super) fn charge_interrupts<const N: usize>(&mut self, shares: &mut FrameShares<N>) {
        for port in std::mem::take(&mut self.interrupted).iter() {
            if let Some(access) = self.access_mut(Function::Vf(port.get())) {
                let count = std::mem::take(&mut access.uncharged_interrupts);
                shares.charge(port, WorkCost::of_interrupts(count));
            }
        }
    }

    /// Returns the guest memory for a DMA access of a function. A function that the port does not offer has none.
    fn memory(&self, function: Function, iova: Iova) -> Result<&DmaTable, DmaFault> {
        let access = self.functions.get(index_of(function));
        access.map(|access| &access.as_ref().memory).ok_or(DmaFault { function, iova })
    }
}

impl<F: AsRef<FunctionAccess> + AsMut<FunctionAccess>> Bus for FunctionTable<F> {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        let read = self.memory(function, iova)?.read(iova, into);
        read.map_err(|fault| DmaFault { function, iova: fault.iova })
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        pass_moment();
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
        pass_moment();
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
        pass_moment();
        source.carry(&mut from.hint.0, (target, &mut to.hint.0), run, complete)
    }

    fn carry_out(
        &mut self,
        from: HintedMemory<'_>,
        into: &mut [u8],
        run: FrameCopyBatch<'_>,
        complete: Option<&mut HeadCompleter<'_>>,
    ) -> usize {
        let Ok(source) = self.memory(from.function, 0) else { return 0 };
        let FrameCopyBatch { heads, sources, lengths, targets, sums } = run;
        let run = host::dma::FrameCopyList { heads, sources, lengths, targets, sums };
        source.carry_out(&mut from.hint.0, into, run, complete)
    }

    fn copy_in(&mut self, from: &[u8], to: HintedMemory<'_>, frames: FramePlaces<'_>) -> usize {
        let Ok(target) = self.memory(to.function, 0) else { return 0 };
        let FramePlaces { sources, lengths, targets } = frames;
        pass_moment();
        target.copy_in(&mut to.hint.0, (from, sources), lengths, targets)
    }

    fn copy(&mut self, from: HintedMemory<'_>, to: HintedMemory<'_>, payloads: SegmentPayloads<'_>) -> usize {
        let (Ok(source), Ok(target)) = (self.memory(from.function, 0), self.memory(to.function, 0)) else {
            return 0;
        };
        let SegmentPayloads { sources, lengths, targets, sums } = payloads;
        let payloads = host::dma::PayloadCopyList { sources, lengths, targets, sums };
        pass_moment();
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
        pass_moment();
        memory.map_or(0, |memory| memory.scatter(&mut to.hint.0, headers, length, targets))
    }

    #[inline]
    fn prefetch(&mut self, function: Function, range: (Iova, usize), access: AnnouncedAccess) {
        if let Some(reached) = self.functions.get(index_of(function)) {
            reached.as_ref().memory.prefetch(range, access == AnnouncedAccess::Write);
        }
    }

    #[inline]
    fn record_ring(&mut self, (function, ring): (Function, u8), first: usize, words: &[u64]) {
        let access = self.functions.get(index_of(function)).map(AsRef::as_ref);
        if let Some(records) = access.and_then(|access| access.records.as_ref()) {
            pass_moment();
            records.store(ring, first, words);
        }
    }

    fn recorded_ring(&mut self, (function, ring): (Function, u8), first: usize, into: &mut [u64]) {
        into.fill(0);
        let access = self.functions.get(index_of(function)).map(AsRef::as_ref);
        if let Some(records) = access.and_then(|access| access.records.as_ref()) {
            records.load(ring, first, into);
        }
    }

    fn msix(&mut self, function: Function, vector: u16) {
        self.send_msix(function, vector);
    }

    fn msi(&mut self, function: Function) {
        self.interrupt(function, pci_irq::MSI, 0);
    }

    fn intx(&mut self, function: Function, raised: bool) {
        self.move_pin(function, raised);
    }
}
