//! Test fixture of guests and a service domain with real grant tables, front ends and a back end.

use crate::back::{
    FrameHandle, GrantedAddress, NetworkBackend, NetworkBackendHal, NotGranted, TransmitPollOutcome, VifIndex,
};
use crate::front::{NetworkFrontend, NetworkFrontendHal, TransmitError};
use crate::ring::SLOTS;
use crate::{InterfaceRings, MAX_FRAME, PAGE, PendingOffloads};
use alloc::vec;
use alloc::vec::Vec;
use hypervisor::cost::CostTable;
use hypervisor::cpu::{HostMachine, ProcessorConfig};
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::grant::{GrantAccess, GrantAddress, GrantHandle, GrantReference, GrantTables};
use i82576::MacAddress;

/// Grant tables, rings and pending events that the front ends share with the back end.
pub(super) struct SharedNetworkState {
    pub(super) grants: GrantTables,
    pub(super) rings: Vec<InterfaceRings>,
    service: DomainId,
    guests: Vec<DomainId>,
    to_guests: Vec<usize>,
    to_back: Vec<VifIndex>,
}

pub(super) struct SplitNetworkFixture {
    pub(super) backend: NetworkBackend<GrantHandle>,
    pub(super) shared: SharedNetworkState,
    fronts: Vec<NetworkFrontend>,
}

/// Machine operations of one guest's front end, on the fixture's shared state.
struct GuestFrontendHal<'a> {
    shared: &'a mut SharedNetworkState,
    vif: VifIndex,
}

/// Returns a frame of `length` bytes that carries `number` at the start of its payload.
pub(super) fn frame(length: usize, number: u8) -> Vec<u8> {
    (0..length).map(|at| if at == 14 { number } else { (at % 251) as u8 }).collect()
}

impl SharedNetworkState {
    fn address(&self, granted: GrantedAddress) -> GrantAddress {
        let GrantedAddress { vif, reference, offset } = granted;
        GrantAddress { owner: self.guest(vif), reference: GrantReference(reference), offset }
    }

    fn guest(&self, vif: VifIndex) -> DomainId {
        self.guests[usize::from(vif.0)]
    }
}

impl NetworkBackendHal for SharedNetworkState {
    type Mapping = GrantHandle;

    fn rings(&mut self, vif: VifIndex) -> &mut InterfaceRings {
        &mut self.rings[usize::from(vif.0)]
    }

    fn map(&mut self, vif: VifIndex, reference: u32) -> Result<GrantHandle, NotGranted> {
        let owner = self.guest(vif);
        self.grants
            .map(self.service, owner, GrantReference(reference), GrantAccess::Read)
            .map_err(|_| NotGranted)
    }

    fn unmap(&mut self, _: VifIndex, mapping: GrantHandle) {
        self.grants.unmap(self.service, mapping).unwrap();
    }

    fn read(
        &mut self,
        _: VifIndex,
        mapping: GrantHandle,
        offset: u16,
        into: &mut [u8],
    ) -> Result<(), NotGranted> {
        let page = self.grants.mapped(self.service, mapping).map_err(|_| NotGranted)?;
        into.copy_from_slice(
            page.get(usize::from(offset)..).and_then(|p| p.get(..into.len())).ok_or(NotGranted)?,
        );
        Ok(())
    }

    fn copy_to(&mut self, to: GrantedAddress, bytes: &[u8]) -> Result<(), NotGranted> {
        let to = self.address(to);
        self.grants.copy_to(self.service, to, bytes).map_err(|_| NotGranted)
    }

    fn copy(&mut self, from: GrantedAddress, to: GrantedAddress, length: usize) -> Result<(), NotGranted> {
        let (from, to) = (self.address(from), self.address(to));
        self.grants.copy(self.service, from, to, length).map_err(|_| NotGranted)
    }

    fn notify(&mut self, vif: VifIndex) {
        self.to_guests[usize::from(vif.0)] += 1;
    }
}

impl NetworkFrontendHal for GuestFrontendHal<'_> {
    fn rings(&mut self) -> &mut InterfaceRings {
        self.shared.rings(self.vif)
    }

    fn page(&mut self, page: u32) -> &mut [u8] {
        let guest = self.shared.guest(self.vif);
        self.shared.grants.domain(guest).unwrap().page_mut(page).unwrap()
    }

    fn grant(&mut self, page: u32, writable: bool) -> Option<u32> {
        let (guest, service) = (self.shared.guest(self.vif), self.shared.service);
        let access = if writable { GrantAccess::Write } else { GrantAccess::Read };
        let granted = self.shared.grants.domain(guest).unwrap().grant(service, page, access);
        granted.ok().map(|GrantReference(at)| at)
    }

    fn end_access(&mut self, reference: u32) -> bool {
        let guest = self.shared.guest(self.vif);
        self.shared.grants.domain(guest).unwrap().end_access(GrantReference(reference)).is_ok()
    }

    fn notify(&mut self) {
        self.shared.to_back.push(self.vif);
    }
}

impl SplitNetworkFixture {
    /// Creates a fixture of `guests` guests and a back end with `workers` workers, with all receive pages posted and no
    /// frame in flight.
    pub(super) fn new(guests: usize, workers: usize) -> Self {
        let mut machine = HostMachine::new(ProcessorConfig::from_table(&CostTable::nehalem(), 1, 1));
        let service = machine.add_domain(DomainKind::Dom0, "service".into());
        let mut shared = SharedNetworkState {
            grants: GrantTables::new(),
            rings: Vec::new(),
            service,
            guests: Vec::new(),
            to_guests: vec![0; guests],
            to_back: Vec::new(),
        };
        let mut backend = NetworkBackend::new(workers);
        let mut fronts = Vec::new();
        for n in 0..guests {
            let domain = machine.add_domain(DomainKind::Pvm, "guest".into());
            shared.grants.add_domain(domain, 2 * SLOTS, 2 * SLOTS);
            shared.guests.push(domain);
            shared.rings.push(InterfaceRings::default());
            let mut front = NetworkFrontend::new(MacAddress([2, 0, 0, 0, 0, n as u8]));
            front.start(&mut GuestFrontendHal { shared: &mut shared, vif: backend.connect() });
            fronts.push(front);
        }
        let mut bench = Self { backend, shared, fronts };
        bench.deliver_events();
        (0..workers).for_each(|worker| while bench.take(worker) != TransmitPollOutcome::Idle {});
        bench
    }

    fn front(&mut self, vif: VifIndex) -> (&mut NetworkFrontend, GuestFrontendHal<'_>) {
        (&mut self.fronts[usize::from(vif.0)], GuestFrontendHal { shared: &mut self.shared, vif })
    }

    /// Sends a frame through the front end of a guest, and delivers the front end's event to the back end.
    pub(super) fn send(
        &mut self,
        vif: VifIndex,
        frame: &[u8],
        offload: PendingOffloads,
    ) -> Result<(), TransmitError> {
        let (front, mut side) = self.front(vif);
        let sent = front.transmit(&mut side, frame, offload);
        front.flush(&mut side);
        self.deliver_events();
        sent
    }

    /// Delivers all pending events of front ends to the back end.
    pub(super) fn deliver_events(&mut self) {
        self.shared.to_back.drain(..).for_each(|vif| self.backend.event(vif));
    }

    pub(super) fn take(&mut self, worker: usize) -> TransmitPollOutcome {
        self.backend.take(worker, &mut self.shared)
    }

    pub(super) fn deliver(&mut self, key: FrameHandle, to: VifIndex) -> bool {
        self.backend.deliver(key, to, &mut self.shared)
    }

    pub(super) fn duplicate(&mut self, key: &FrameHandle) -> Option<FrameHandle> {
        self.backend.duplicate(key, &mut self.shared)
    }

    pub(super) fn release(&mut self, worker: usize) -> usize {
        self.backend.release(worker, &mut self.shared, usize::MAX)
    }

    /// Makes the back end send delayed events to the guests that a worker thread serves.
    pub(super) fn notify_withheld(&mut self, worker: usize) {
        self.backend.notify_withheld(worker, &mut self.shared);
    }

    pub(super) fn merge_segments(&mut self, vif: VifIndex) {
        self.fronts[usize::from(vif.0)].merge_segments();
    }

    pub(super) fn unsent(&self, vif: VifIndex) -> usize {
        self.fronts[usize::from(vif.0)].unsent()
    }

    /// Takes up to 64 frames from guests and delivers each to the interface that `to` chooses by the frame's head.
    /// Returns the number of frames.
    pub(super) fn forward(&mut self, worker: usize, to: impl Fn(&[u8]) -> VifIndex) -> usize {
        let mut frames = 0;
        for _ in 0..64 {
            match self.take(worker) {
                TransmitPollOutcome::Frame(_, key) => {
                    frames += 1;
                    let to = to(self.backend.head(&key));
                    self.deliver(key, to);
                }
                TransmitPollOutcome::Nothing => {}
                TransmitPollOutcome::Idle => break,
            }
        }
        frames
    }

    /// Copies up to 64 queued frames of a worker thread to their guests. Returns the number of frames.
    pub(super) fn copy(&mut self, worker: usize) -> usize {
        self.backend.receive(worker, &mut self.shared, 64)
    }

    /// Copies queued frames of a worker thread to their guests, then releases pages that worker 0 mapped. Returns the
    /// number of frames.
    pub(super) fn turn(&mut self, worker: usize) -> usize {
        let frames = self.copy(worker);
        self.release(0);
        frames
    }

    /// Delivers a frame to an interface, as if a card had received the frame. Returns `false` if the frame was dropped.
    pub(super) fn arrive(&mut self, frame: &[u8], to: VifIndex) -> bool {
        let key = self.backend.allocate().expect("the frame store has a frame for every posted page");
        self.backend.buffer(&key)[..frame.len()].copy_from_slice(frame);
        self.backend.set_filled(&key, frame.len(), PendingOffloads::default());
        self.deliver(key, to)
    }

    /// Receives all pending frames of a guest, without an event request.
    pub(super) fn take_all(&mut self, vif: VifIndex) -> Vec<(Vec<u8>, PendingOffloads)> {
        let (front, mut side) = self.front(vif);
        let mut buffer = vec![0; MAX_FRAME];
        let next = || {
            let received = front.receive(&mut side, &mut buffer)?;
            Some((buffer[..received.length].to_vec(), received.offload))
        };
        core::iter::from_fn(next).collect()
    }

    pub(super) fn receive_done(&mut self, vif: VifIndex) -> bool {
        let (front, mut side) = self.front(vif);
        front.receive_done(&mut side)
    }

    /// Receives frames of a guest until none is pending, and then requests an event.
    pub(super) fn received(&mut self, vif: VifIndex) -> Vec<(Vec<u8>, PendingOffloads)> {
        let mut all = self.take_all(vif);
        while self.receive_done(vif) {
            all.extend(self.take_all(vif));
        }
        all
    }

    /// Frees the transmit pages of a guest's sent frames. Returns the number of pages.
    pub(super) fn clean(&mut self, vif: VifIndex) -> usize {
        let (front, mut side) = self.front(vif);
        front.clean(&mut side)
    }

    pub(super) fn stuck(&self, vif: VifIndex) -> u64 {
        self.fronts[usize::from(vif.0)].counters().stuck
    }

    pub(super) fn malformed(&self, vif: VifIndex) -> u64 {
        self.fronts[usize::from(vif.0)].counters().malformed
    }

    pub(super) fn events_to(&self, vif: VifIndex) -> usize {
        self.shared.to_guests[usize::from(vif.0)]
    }

    /// Overwrites every transmit page of a guest, as a hostile guest may.
    pub(super) fn overwrite_pages(&mut self, vif: VifIndex) {
        let guest = self.shared.guest(vif);
        let own = self.shared.grants.domain(guest).unwrap();
        (0..SLOTS).for_each(|page| own.page_mut(page).unwrap()[..PAGE].fill(0xee));
    }

    /// Grants a guest's page to the back end.
    pub(super) fn grant(&mut self, vif: VifIndex, page: u32, writable: bool) -> u32 {
        GuestFrontendHal { shared: &mut self.shared, vif }.grant(page, writable).unwrap()
    }
}
