//! Guests and a service domain with grant tables, as far as the two halves of the driver need them.

use crate::back::{Backend, Granted, Host, Key, NotGranted, Taken, Vif};
use crate::front::{Front, Hal, Refused};
use crate::ring::SLOTS;
use crate::{LONGEST, Offload, PAGE, Rings};
use alloc::vec;
use alloc::vec::Vec;
use hypervisor::cost::CostTable;
use hypervisor::cpu::{Config, Machine};
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::grant::{Access, Grants, Handle, Place, Reference};
use i82576::MacAddress;

/// What lies between the two halves.
pub(super) struct Between {
    pub(super) grants: Grants,
    pub(super) rings: Vec<Rings>,
    service: DomainId,
    guests: Vec<DomainId>,
    to_guests: Vec<usize>,
    to_back: Vec<Vif>,
}

pub(super) struct Bench {
    pub(super) backend: Backend<Handle>,
    pub(super) between: Between,
    fronts: Vec<Front>,
}

/// A guest's side of what lies between.
struct Side<'a> {
    between: &'a mut Between,
    vif: Vif,
}

/// A frame with a number where its payload begins.
pub(super) fn frame(length: usize, number: u8) -> Vec<u8> {
    (0..length).map(|at| if at == 14 { number } else { (at % 251) as u8 }).collect()
}

impl Between {
    fn place(&self, granted: Granted) -> Place {
        let Granted { vif, reference, offset } = granted;
        Place { owner: self.guest(vif), reference: Reference(reference), offset }
    }

    fn guest(&self, vif: Vif) -> DomainId {
        self.guests[usize::from(vif.0)]
    }
}

impl Host for Between {
    type Mapping = Handle;

    fn rings(&mut self, vif: Vif) -> &mut Rings {
        &mut self.rings[usize::from(vif.0)]
    }

    fn map(&mut self, vif: Vif, reference: u32) -> Result<Handle, NotGranted> {
        let owner = self.guest(vif);
        self.grants.map(self.service, owner, Reference(reference), Access::Read).map_err(|_| NotGranted)
    }

    fn unmap(&mut self, _: Vif, mapping: Handle) {
        self.grants.unmap(self.service, mapping).unwrap();
    }

    fn read(&mut self, _: Vif, mapping: Handle, offset: u16, into: &mut [u8]) -> Result<(), NotGranted> {
        let page = self.grants.mapped(self.service, mapping).map_err(|_| NotGranted)?;
        into.copy_from_slice(
            page.get(usize::from(offset)..).and_then(|p| p.get(..into.len())).ok_or(NotGranted)?,
        );
        Ok(())
    }

    fn copy_to(&mut self, to: Granted, bytes: &[u8]) -> Result<(), NotGranted> {
        let to = self.place(to);
        self.grants.copy_to(self.service, to, bytes).map_err(|_| NotGranted)
    }

    fn copy(&mut self, from: Granted, to: Granted, length: usize) -> Result<(), NotGranted> {
        let (from, to) = (self.place(from), self.place(to));
        self.grants.copy(self.service, from, to, length).map_err(|_| NotGranted)
    }

    fn notify(&mut self, vif: Vif) {
        self.to_guests[usize::from(vif.0)] += 1;
    }
}

impl Hal for Side<'_> {
    fn rings(&mut self) -> &mut Rings {
        self.between.rings(self.vif)
    }

    fn page(&mut self, page: u32) -> &mut [u8] {
        let guest = self.between.guest(self.vif);
        self.between.grants.domain(guest).unwrap().page_mut(page).unwrap()
    }

    fn grant(&mut self, page: u32, writable: bool) -> Option<u32> {
        let (guest, service) = (self.between.guest(self.vif), self.between.service);
        let access = if writable { Access::Write } else { Access::Read };
        let granted = self.between.grants.domain(guest).unwrap().grant(service, page, access);
        granted.ok().map(|Reference(at)| at)
    }

    fn end_access(&mut self, reference: u32) -> bool {
        let guest = self.between.guest(self.vif);
        self.between.grants.domain(guest).unwrap().end_access(Reference(reference)).is_ok()
    }

    fn notify(&mut self) {
        self.between.to_back.push(self.vif);
    }
}

impl Bench {
    /// So many guests on so many workers, all posted and nothing under way.
    pub(super) fn new(guests: usize, workers: usize) -> Self {
        let mut machine = Machine::new(Config::from_table(&CostTable::nehalem(), 1, 1));
        let service = machine.add_domain(DomainKind::Dom0, "service".into());
        let mut between = Between {
            grants: Grants::new(),
            rings: Vec::new(),
            service,
            guests: Vec::new(),
            to_guests: vec![0; guests],
            to_back: Vec::new(),
        };
        let mut backend = Backend::new(workers);
        let mut fronts = Vec::new();
        for n in 0..guests {
            let domain = machine.add_domain(DomainKind::Pvm, "guest".into());
            between.grants.add_domain(domain, 2 * SLOTS, 2 * SLOTS);
            between.guests.push(domain);
            between.rings.push(Rings::default());
            let mut front = Front::new(MacAddress([2, 0, 0, 0, 0, n as u8]));
            front.start(&mut Side { between: &mut between, vif: backend.connect() });
            fronts.push(front);
        }
        let mut bench = Self { backend, between, fronts };
        bench.hear();
        (0..workers).for_each(|worker| while bench.take(worker) != Taken::Idle {});
        bench
    }

    fn front(&mut self, vif: Vif) -> (&mut Front, Side<'_>) {
        (&mut self.fronts[usize::from(vif.0)], Side { between: &mut self.between, vif })
    }

    /// A guest sends a frame, and the back end hears of it.
    pub(super) fn send(&mut self, vif: Vif, frame: &[u8], offload: Offload) -> Result<(), Refused> {
        let (front, mut side) = self.front(vif);
        let sent = front.transmit(&mut side, frame, offload);
        front.flush(&mut side);
        self.hear();
        sent
    }

    /// The back end hears of all events.
    pub(super) fn hear(&mut self) {
        self.between.to_back.drain(..).for_each(|vif| self.backend.event(vif));
    }

    pub(super) fn take(&mut self, worker: usize) -> Taken {
        self.backend.take(worker, &mut self.between)
    }

    pub(super) fn deliver(&mut self, key: Key, to: Vif) -> bool {
        self.backend.deliver(key, to, &mut self.between)
    }

    pub(super) fn duplicate(&mut self, key: &Key) -> Option<Key> {
        self.backend.duplicate(key, &mut self.between)
    }

    pub(super) fn release(&mut self, worker: usize) -> usize {
        self.backend.release(worker, &mut self.between, usize::MAX)
    }

    /// A worker's guests hear of all that they have not heard of.
    pub(super) fn tell(&mut self, worker: usize) {
        self.backend.tell(worker, &mut self.between);
    }

    pub(super) fn merge_segments(&mut self, vif: Vif) {
        self.fronts[usize::from(vif.0)].merge_segments();
    }

    pub(super) fn unsent(&self, vif: Vif) -> usize {
        self.fronts[usize::from(vif.0)].unsent()
    }

    /// A turn of 64 tries to take, each frame delivered where its head says: how many frames.
    pub(super) fn forward(&mut self, worker: usize, to: impl Fn(&[u8]) -> Vif) -> usize {
        let mut frames = 0;
        for _ in 0..64 {
            match self.take(worker) {
                Taken::Frame(_, key) => {
                    frames += 1;
                    let to = to(self.backend.head(&key));
                    self.deliver(key, to);
                }
                Taken::Nothing => {}
                Taken::Idle => break,
            }
        }
        frames
    }

    /// A worker's turn to copy.
    pub(super) fn copy(&mut self, worker: usize) -> usize {
        self.backend.receive(worker, &mut self.between, 64)
    }

    /// A worker's turn to copy, and the first worker's to release.
    pub(super) fn turn(&mut self, worker: usize) -> usize {
        let frames = self.copy(worker);
        self.release(0);
        frames
    }

    /// A frame arrives at a card.
    pub(super) fn arrive(&mut self, frame: &[u8], to: Vif) -> bool {
        let key = self.backend.vacant().expect("there is room for all that is posted");
        self.backend.buffer(&key)[..frame.len()].copy_from_slice(frame);
        self.backend.filled(&key, frame.len(), Offload::default());
        self.deliver(key, to)
    }

    /// A guest takes all frames that are there.
    pub(super) fn take_all(&mut self, vif: Vif) -> Vec<(Vec<u8>, Offload)> {
        let (front, mut side) = self.front(vif);
        let mut buffer = vec![0; LONGEST];
        let next = || {
            let received = front.receive(&mut side, &mut buffer)?;
            Some((buffer[..received.length].to_vec(), received.offload))
        };
        core::iter::from_fn(next).collect()
    }

    pub(super) fn receive_done(&mut self, vif: Vif) -> bool {
        let (front, mut side) = self.front(vif);
        front.receive_done(&mut side)
    }

    /// A guest polls until nothing is left.
    pub(super) fn received(&mut self, vif: Vif) -> Vec<(Vec<u8>, Offload)> {
        let mut all = self.take_all(vif);
        while self.receive_done(vif) {
            all.extend(self.take_all(vif));
        }
        all
    }

    /// A guest takes pages back that have been sent.
    pub(super) fn clean(&mut self, vif: Vif) -> usize {
        let (front, mut side) = self.front(vif);
        front.clean(&mut side)
    }

    pub(super) fn stuck(&self, vif: Vif) -> u64 {
        self.fronts[usize::from(vif.0)].counters().stuck
    }

    pub(super) fn malformed(&self, vif: Vif) -> u64 {
        self.fronts[usize::from(vif.0)].counters().malformed
    }

    pub(super) fn events_to(&self, vif: Vif) -> usize {
        self.between.to_guests[usize::from(vif.0)]
    }

    /// A guest writes over every page that it sends from.
    pub(super) fn scribble(&mut self, vif: Vif) {
        let guest = self.between.guest(vif);
        let own = self.between.grants.domain(guest).unwrap();
        (0..SLOTS).for_each(|page| own.page_mut(page).unwrap()[..PAGE].fill(0xee));
    }

    /// A guest grants a page to the back end.
    pub(super) fn grant(&mut self, vif: Vif, page: u32, writable: bool) -> u32 {
        Side { between: &mut self.between, vif }.grant(page, writable).unwrap()
    }
}
