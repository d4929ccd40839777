//! The card's rings for bursts of plain frames (crate `rings`). All other frames pass `transmit` and `receive`.

use crate::offload::plain::{Advanced, Plain};
use crate::policy::{self, pool};
use crate::queue::QueueIo;
use crate::scratch::{Receiving, Scratch};
use crate::work::Work;
use alloc::boxed::Box;
use i82576::descriptor::SIZE;
use offload::Request;
use offload::insert::insert;
use offload::plain::Insertion;
use pcie::{Bus, Function, Hint};
use plane::frame::Sealed;
use plane::switch::Reason;
use plane::{Port, Sender};
use rings::{Misfit, Places, Receiver, Terms};

impl<B: Bus> Work<'_, B> {
    /// Returns the checksums that a descriptor of a burst requests, and the headers that its context describes.
    fn request(&self, sender: Sender, at: usize) -> Option<Request> {
        self.queues.tx[policy::queue(sender).index()].request(at, &self.scratch.upcoming)
    }
}

impl<B: Bus> rings::Card for Work<'_, B> {
    type Bus = B;
    type TxFormat = Advanced;
    type RxFormat = Plain;

    const KEEPS_DESCRIPTORS: bool = true;

    fn places(&mut self) -> &mut Option<Box<Places>> {
        &mut self.scratch.places
    }

    fn is_careful(&self) -> bool {
        !self.scratch.shortcuts
    }

    fn judges(&self) -> bool {
        self.scratch.glances
    }

    fn next(&mut self, sender: Sender, most: usize) -> &[[u8; SIZE]] {
        let Self { queues, file, scratch, bus, .. } = self;
        let queue = policy::queue(sender);
        let tx = &mut queues.tx[queue.index()];
        let Some(ring) = tx.open(file) else { return &[] };
        let function = scratch.conditions.owners.of_queue(queue);
        let Scratch { upcoming, faults, .. } = scratch;
        let fetched = tx.next_plain(&mut QueueIo { file, function, bus: *bus }, &ring, most, upcoming);
        fetched.unwrap_or_else(|_| {
            *faults += 1;
            &[]
        })
    }

    fn pass(&mut self, sender: Sender, count: usize) {
        self.queues.tx[policy::queue(sender).index()].pass_plain(count, &self.scratch.upcoming);
    }

    fn insertion(&self, sender: Sender, at: usize) -> Option<Insertion> {
        self.request(sender, at)?.plain()
    }

    fn insert(&self, sender: Sender, at: usize, frame: &mut [u8]) -> Result<Option<Sealed>, Misfit> {
        let asked = self.request(sender, at).filter(|asked| asked.ip_checksum || asked.l4_checksum);
        asked.map_or(Ok(None), |asked| insert(frame, &asked).map_err(|_| Misfit))
    }

    fn source(&mut self, sender: Sender) -> (Function, &mut Hint, &mut B) {
        let queue = policy::queue(sender);
        (self.scratch.conditions.owners.of_queue(queue), self.queues.tx[queue.index()].buffers(), self.bus)
    }

    fn refused(&mut self, sender: Sender, reason: Reason) {
        self.refused(policy::queue(sender), reason);
    }

    #[inline]
    fn receiver(&mut self, port: Port, _queue: u8, terms: Terms) -> Option<Receiver<'_, B, Plain>> {
        let queue = self.usual_queue(pool(port));
        self.open(queue);
        let Receiving { opened, function } = &self.scratch.receiving[queue.index()];
        let format = Plain::new(self.scratch.conditions.checks, terms);
        self.queues.rx[queue.index()].receiver(opened.as_ref()?, *function, self.bus, format)
    }
}
